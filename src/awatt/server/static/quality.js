// The measured quality: a random sample of sentences is labelled, 20 at a time, and compared with what was found.

import * as api from "./api.js";
import { counted, el, fill, notify, svg } from "./dom.js";
import { startQueue } from "./queue.js";
import { aspects, enqueue, state } from "./state.js";
import { show } from "./app.js";
import { lineChart } from "./charts.js";

export const measured = el("div", { className: "card", id: "measured", "aria-live": "polite" });
const MEASURES = { f1: "F1", precision: "Precision", recall: "Recall" };
let sample = null, version = "", course = null, courseOf = ""; // of an aspect, or with "" of all of them together

export async function loadMeasured() {
  const wanted = `${state.project.revision} ${state.reviews}`;
  if (version === wanted) return;
  version = wanted;
  try {
    const found = state.texts.length && aspects().length ? await api.get("/v1/project/quality") : null;
    if (version !== wanted) return; // a newer one has been requested
    [sample, course] = [found, null];
  } catch {
    if (version === wanted) version = ""; // requested again with the next change
    return;
  }
  drawMeasured();
  if (sample?.quality) loadCourse(wanted);
}

// How the quality changed as examples were added takes a few detectors, so it comes later.
async function loadCourse(wanted) {
  try {
    const found = await api.get("/v1/project/quality/course");
    if (version === wanted) { course = found.points; drawMeasured(); }
  } catch { /* requested again with the next change */ }
}

// On a second line: the day, or the time where all is of one day.
const day = (when) => new Date(1000 * when).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
function dateOf({ when }) {
  const days = new Set(course.filter((point) => point.when).map((point) => day(point.when)));
  if (!when) return "";
  return `\n${days.size > 1 ? day(when) : new Date(1000 * when).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })}`;
}

const described = (node, text) => { node.prepend(svg("title", {}, document.createTextNode(text))); return node; };

function drawCourse() {
  if (!(course?.length > 1) || !course.some((point) => point.quality.overall.f1)) return null;
  const of = ({ quality }) => (courseOf && quality.aspects.find((each) => each.name === courseOf)) || quality.overall;
  const select = el("select", { id: "course-of", onchange: () => { courseOf = select.value; drawMeasured(); } }, el("option", { value: "" }, "all aspects"), ...aspects().map((a) => el("option", { value: a.name }, a.name)));
  select.value = aspects().some((a) => a.name === courseOf) ? courseOf : "";
  const names = course.map((point) => `${counted(point.n_examples, "example")}${dateOf(point)}`), accent = getComputedStyle(document.querySelector(".brand")).color;
  return el("div", { id: "course" }, el("h3", {}, "Over time"), el("p", {}, el("label", {}, "On the same sample, as the detector learned from more examples: ", select)),
    el("div", { className: "panels" }, ...Object.entries(MEASURES).map(([kind, title]) => el("div", { className: "panel" }, el("h3", {}, title), lineChart(names, course.map((point) => of(point)[kind]), accent, 1, `${title} over time`, (node, i) => described(node, `${names[i].replace("\n", ", ")}: ${two(of(course[i])[kind])}`))))));
}

function labelSample() {
  if (!sample.next.length) { notify("Every sentence is labelled."); return; }
  show("sentences");
  startQueue(sample.next, "Random sample", { again: labelMore, end: "The sample is labelled: under Aspects you see the measured quality." });
  notify("Label each of these, also those that mention nothing: skip none, and the measured quality holds for all sentences.");
}

async function labelMore() {
  await enqueue(async () => {}); // after the last label has been saved
  await loadMeasured();
  if (sample) labelSample();
}

const two = (measure) => (measure ? `${measure.value.toFixed(2)} (${measure.low.toFixed(2)}–${measure.high.toFixed(2)})` : "–");

export function drawMeasured() {
  const charts = drawCourse();
  measured.classList.toggle("span", Boolean(charts)); // they need the room
  const heading = el("h2", {}, "Measured quality");
  if (!sample) { fill(measured, heading, el("p", {}, "Load reviews and add aspects, then label a random sample to measure how good the detection is.")); return; }
  const button = sample.next.length ? el("button", { id: "measure", onclick: labelSample }, `Label ${counted(sample.next.length, sample.labelled ? "more sentence" : "random sentence")}`)
    : el("p", { className: "hint" }, "Every sentence is labelled.");
  if (!sample.quality) {
    fill(measured, heading, el("p", {}, "Not measured yet. Label a random sample of the sentences to get precision, recall and F1 with their intervals."), button);
    return;
  }
  const { quality } = sample, row = (each) => el("tr", {}, el("th", { scope: "row" }, each.name), ...[each.precision, each.recall, each.f1].map((one) => el("td", {}, two(one))));
  fill(measured, heading,
    el("p", {}, `On ${counted(sample.labelled, "random sentence")}, each fifth of them found by a detector that learned from all other labels; in brackets the 95 % intervals.`),
    quality.overall.f1 ? null : el("p", {}, "None of them mentions an aspect, and none was found in them: label more."),
    el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Measured quality" }, el("table", { id: "measured-table" },
      el("thead", {}, el("tr", {}, ...["Aspect", "Precision", "Recall", "F1"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, row(quality.overall), ...quality.aspects.map((each) => row(each))))),
    button, charts);
}
