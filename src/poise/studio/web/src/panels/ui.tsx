/** The pieces that panels are made of. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ChevronDown, type LucideIcon } from "lucide-preact";
import { clamp } from "../arrays";

interface ButtonProps {
  readonly label: string;
  readonly onPress: () => void;
  readonly icon?: LucideIcon;
  readonly hint?: string;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly kind?: "plain" | "primary" | "quiet";
}

export function Button({
  label,
  onPress,
  icon: Icon,
  hint,
  pressed,
  disabled,
  kind = "plain",
}: ButtonProps): JSX.Element {
  return (
    <button
      type="button"
      class={`button ${kind}`}
      title={hint ?? label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onPress}
    >
      {Icon && <Icon size={15} aria-hidden="true" />}
      <span>{label}</span>
    </button>
  );
}

export function IconButton({
  label,
  onPress,
  icon: Icon,
  hint,
  pressed,
  disabled,
}: ButtonProps & { icon: LucideIcon }): JSX.Element {
  return (
    <button
      type="button"
      class="icon-button"
      title={hint ?? label}
      aria-label={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onPress}
    >
      <Icon size={17} aria-hidden="true" />
    </button>
  );
}

interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
  readonly hint?: string;
  readonly disabled?: boolean;
}

interface SegmentedProps<T extends string> {
  readonly label: string;
  readonly choices: readonly Choice<T>[];
  readonly value: T | null;
  readonly onChoose: (value: T) => void;
}

export function Segmented<T extends string>({ label, choices, value, onChoose }: SegmentedProps<T>): JSX.Element {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          type="button"
          key={choice.value}
          aria-pressed={choice.value === value}
          disabled={choice.disabled}
          title={choice.hint ?? choice.label}
          onClick={() => onChoose(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}

interface SectionProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly closed?: boolean;
  /** Something in it was selected elsewhere: it opens. */
  readonly wanted?: boolean;
}

export function Section({ title, children, aside, closed, wanted = false }: SectionProps): JSX.Element {
  const [open, setOpen] = useState(!closed);
  useEffect(() => {
    if (wanted) setOpen(true);
  }, [wanted]);
  return (
    <section class="section" aria-label={title}>
      <header>
        <h2>
          <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
            <ChevronDown size={14} class={open ? "" : "turned"} aria-hidden="true" />
            {title}
          </button>
        </h2>
        {aside}
      </header>
      {open && <div class="section-body">{children}</div>}
    </section>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: number;
  readonly onEnter: (value: number) => void;
  readonly digits?: number;
  readonly unit?: string;
  readonly low?: number;
  readonly high?: number;
  readonly prefix?: string;
}

/** A number to type; Enter or leaving takes it, Escape gives it up, up and down arrows step its last digit. */
export function NumberField({
  label,
  value,
  onEnter,
  digits = 1,
  unit,
  low = -1000,
  high = 1000,
  prefix,
}: NumberFieldProps): JSX.Element {
  const [text, setText] = useState<string | null>(null);
  const shown = text ?? value.toFixed(digits);
  const take = (): void => {
    const typed = Number(shown.replace(",", "."));
    setText(null);
    if (text !== null && Number.isFinite(typed)) onEnter(clamp(typed, low, high));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") take();
    else if (event.key === "Escape") setText(null);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      onEnter(
        clamp(
          value + (event.key === "ArrowUp" ? 1 : -1) * (event.shiftKey ? 10 : 1) * 10 ** -Math.min(digits, 1),
          low,
          high,
        ),
      );
    }
  };
  return (
    <label class="number-field">
      {prefix && <span class="prefix">{prefix}</span>}
      <input
        inputMode="decimal"
        aria-label={label}
        value={shown}
        onFocus={(event) => event.currentTarget.select()}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={take}
        onKeyDown={onKeyDown}
      />
      {unit && <span class="unit">{unit}</span>}
    </label>
  );
}

interface SliderProps {
  readonly label: string;
  readonly value: number;
  readonly onMove: (value: number) => void;
  readonly low?: number;
  readonly high?: number;
  readonly step?: number;
  readonly words?: string;
}

export function Slider({ label, value, onMove, low = 0, high = 1, step = 0.01, words }: SliderProps): JSX.Element {
  return (
    <label class="slider">
      <span class="name">{label}</span>
      <input
        type="range"
        min={low}
        max={high}
        step={step}
        value={value}
        onInput={(event) => onMove(Number(event.currentTarget.value))}
      />
      <output>{words ?? value.toFixed(2)}</output>
    </label>
  );
}

interface ToggleProps {
  readonly label: string;
  readonly on: boolean;
  readonly onChange: (on: boolean) => void;
  readonly hint?: string;
}

export function Toggle({ label, on, onChange, hint }: ToggleProps): JSX.Element {
  return (
    <label class="toggle" title={hint ?? label}>
      <input type="checkbox" role="switch" checked={on} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span class="track" aria-hidden="true" />
      <span>{label}</span>
    </label>
  );
}

export interface PickFilesProps {
  readonly label: string;
  readonly accept: string;
  readonly onFiles: (files: File[]) => void;
  readonly icon: LucideIcon;
  readonly several?: boolean;
  readonly kind?: "plain" | "primary" | "quiet";
}

/** A button that asks for files. */
export function PickFiles({ label, accept, onFiles, icon, several, kind }: PickFilesProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button label={label} icon={icon} kind={kind ?? "plain"} onPress={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        hidden
        aria-label={label}
        accept={accept}
        multiple={several}
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

/** A canvas that is drawn again whenever its size or what `draw` reads has changed. */
export function useCanvas(draw: (pen: CanvasRenderingContext2D, width: number, height: number) => void): {
  current: HTMLCanvasElement | null;
} {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const repaint = (): void => {
    if (canvas.current) paintCanvas(canvas.current, latest.current);
  };
  useEffect(repaint);
  useEffect(() => {
    const watcher = new ResizeObserver(repaint);
    if (canvas.current) watcher.observe(canvas.current);
    return () => watcher.disconnect();
  }, []);
  return canvas;
}

function paintCanvas(
  canvas: HTMLCanvasElement,
  draw: (pen: CanvasRenderingContext2D, width: number, height: number) => void,
): void {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || !width || !height) return;
  const ratio = Math.min(devicePixelRatio, 2);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  draw(pen, width, height);
}

/** Closes a menu on a press elsewhere or on Escape. */
export function closeOutside(menu: HTMLElement, close: () => void): () => void {
  const press = (event: PointerEvent): void => {
    if (!menu.contains(event.target as Node)) close();
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close();
  };
  window.addEventListener("pointerdown", press, { capture: true });
  window.addEventListener("keydown", key);
  return () => {
    window.removeEventListener("pointerdown", press, { capture: true });
    window.removeEventListener("keydown", key);
  };
}
