import { render } from "preact";
import "@fontsource-variable/inter/wght.css";
import "./style/theme.css";
import "./style/frame.css";
import "./style/pieces.css";
import "./style/stage.css";
import "./style/panels.css";
import "./style/photo.css";
import "./style/timeline.css";
import "./style/over.css";
import "./style/tablets.css";
import { App } from "./app";

render(<App />, document.getElementById("app")!);
