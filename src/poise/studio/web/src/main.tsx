import { render } from "preact";
import "@fontsource-variable/inter/wght.css";
import "./style.css";
import { App } from "./app";

render(<App />, document.getElementById("app")!);
