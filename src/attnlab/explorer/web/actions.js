// Actions of the reader: other runs, other times, other tokens. Each function changes the viewer and asks it to draw.

import { DEFAULT_CAMERA } from './camera.js';
import { fill, glyph } from './dom.js';
import { describeToken } from './drawing.js';
import { takeRecording } from './recordings.js';
import { speakToken } from './words.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */
/** @typedef {import('./types.js').Spec} Spec */

/**
 * Compute another run.
 * @param {Viewer} viewer
 * @param {Spec} spec
 * @param {{isDone?: boolean, keepColours?: boolean}} [options]   isDone: the drag has ended
 */
export function changeRun(viewer, spec, { isDone = true, keepColours = true } = {}) {
  viewer.session.change(spec, { isQuick: !isDone, keepColours });
  viewer.describe();
  if (isDone) viewer.tell();
}

/**
 * Edit the Spec. A new start forgets tokens that were moved by hand.
 * @param {Viewer} viewer
 * @param {(spec: Spec) => void} edit
 * @param {boolean} isDone
 * @param {boolean} isNewStart
 */
export function editRun(viewer, edit, isDone, isNewStart) {
  const before = viewer.session.spec,
    spec = structuredClone(before);
  edit(spec);
  if (isNewStart) delete spec.start.moved;
  const isOther = spec.start.rng !== before.start.rng || spec.start.law !== before.start.law;
  if (isOther) closeVerdict(viewer);
  changeRun(viewer, spec, { isDone, keepColours: !isOther });
}

/** @param {Viewer} viewer */
export function takeNextStart(viewer) {
  if (['rng', 'start', 'controls'].some((name) => viewer.locks.has(name))) return;
  editRun(
    viewer,
    (spec) => {
      spec.start.rng = (spec.start.rng ?? 0) + 1;
    },
    true,
    true,
  );
}

/**
 * @param {Viewer} viewer
 * @param {string} id   of a preset
 */
export function choosePreset(viewer, id) {
  const preset = viewer.payload.presets.find((one) => one.id === id);
  if (!preset) return;
  if (preset.recording) {
    showRecording(viewer, preset, preset.recording);
    return;
  }
  play(viewer, false);
  viewer.preset = preset;
  viewer.view = { ...viewer.view, camera: preset.camera ?? DEFAULT_CAMERA, selected: [], frame: 'limit' };
  viewer.box = null;
  viewer.show.delete('drag');
  closeVerdict(viewer);
  viewer.player.t = 0;
  viewer.wantsPlay = !viewer.isReduced;
  changeRun(viewer, structuredClone(preset.spec), { keepColours: false });
}

/**
 * Change to another recording of the page. Stacks of one sentence share a clock, so the time stays the same.
 * @param {Viewer} viewer
 * @param {import('./types.js').Preset} preset
 * @param {import('./types.js').EmbeddedRecording} packed
 */
export async function showRecording(viewer, preset, packed) {
  const { session, player } = viewer,
    before = session.recording;
  viewer.preset = preset;
  try {
    const recording = await takeRecording(packed);
    if (viewer.preset !== preset) return; // the reader has chosen another run meanwhile
    if (before && (before.until === undefined) !== (recording.until === undefined)) {
      play(viewer, false);
      player.t = 0;
      viewer.wantsPlay = !viewer.isReduced;
    }
    session.spec = structuredClone(preset.spec);
    session.embed(recording);
    viewer.tell();
    viewer.say(preset.name);
  } catch (problem) {
    session.fail(problem);
  }
}

/** Guess mode asks again. @param {Viewer} viewer */
function closeVerdict(viewer) {
  viewer.isSecret = Boolean(viewer.payload.guess);
  viewer.guess = null;
}

/**
 * Move the start of a token; null moves it back.
 * @param {Viewer} viewer
 * @param {number} token
 * @param {number[] | null} place
 * @param {boolean} isDone
 */
export function moveStart(viewer, token, place, isDone) {
  const spec = structuredClone(viewer.session.spec),
    moved = { ...spec.start.moved };
  if (place) moved[token] = place;
  else delete moved[token];
  if (Object.keys(moved).length) spec.start.moved = moved;
  else delete spec.start.moved;
  changeRun(viewer, spec, { isDone });
}

/** @param {Viewer} viewer */
export function putBack(viewer) {
  editRun(
    viewer,
    (spec) => {
      delete spec.start.moved;
    },
    true,
    true,
  );
}

/**
 * Move the start of the chosen token with keys, by pixels. False where there is none to move.
 * @param {Viewer} viewer
 * @param {number} dx
 * @param {number} dy
 */
export function nudge(viewer, dx, dy) {
  const token = viewer.view.selected[0],
    { recording, homes } = viewer.session,
    { camera } = viewer.drawn;
  if (token === undefined || !recording || !viewer.show.has('drag')) return false;
  const from = recording.x0[token],
    perPixel = (2 * (viewer.box?.half[0] ?? 1)) / viewer.area.height;
  const to = (camera ? camera.shift(from, dx, dy) : [from[0] - dy * perPixel])
    .slice(0, recording.d)
    .map((value) => Number(value.toFixed(3)));
  const isHome = homes[token]?.every((value, c) => Math.abs(value - to[c]) < 1e-3);
  moveStart(viewer, token, isHome ? null : to, true);
  viewer.say(`token ${token} starts at ${to.join(', ')}`);
  return true;
}

/**
 * @param {Viewer} viewer
 * @param {string} name
 */
export function toggleShow(viewer, name) {
  if (!viewer.show.delete(name)) viewer.show.add(name);
  if (name === 'drag' && viewer.show.has('drag')) play(viewer, false);
  viewer.describe();
  viewer.tell();
}

/**
 * @param {Viewer} viewer
 * @param {number} t          may be Infinity
 * @param {boolean} isDone
 */
export function seek(viewer, t, isDone) {
  play(viewer, false);
  viewer.wantsPlay = false;
  viewer.player.t = Math.min(t, viewer.session.recording?.until ?? Infinity);
  viewer.touch();
  if (isDone) viewer.tell();
}

/**
 * @param {Viewer} viewer
 * @param {number} frames
 */
export function step(viewer, frames) {
  play(viewer, false);
  if (viewer.session.recording) viewer.player.step(frames, viewer.session.recording);
  seek(viewer, viewer.player.t, true);
}

/**
 * @param {Viewer} viewer
 * @param {boolean} isOn
 */
export function play(viewer, isOn) {
  const { player, layout } = viewer,
    { recording } = viewer.session;
  if (isOn && recording && player.t >= recording.times[recording.T - 1]) player.t = 0;
  if (isOn) document.dispatchEvent(new CustomEvent('attnlab-play', { detail: viewer }));
  if (isOn === player.isPlaying) return;
  player.isPlaying = isOn;
  fill(layout.play, glyph(isOn ? 'pause' : 'play'));
  layout.play.setAttribute('aria-label', isOn ? 'Pause' : 'Play');
  if (!isOn) viewer.tell();
  viewer.touch();
}

/**
 * @param {Viewer} viewer
 * @param {number} token                     -1: none
 * @param {[number, number] | null} at       pixels of the stage; null: beside the token
 */
export function lookAt(viewer, token, at) {
  const { pixels } = viewer.drawn;
  viewer.hover = token;
  viewer.tipAt = at ?? [pixels[4 * token] ?? 0, pixels[4 * token + 1] ?? 0];
  viewer.touch();
}

/**
 * @param {Viewer} viewer
 * @param {number} token   -1: none
 */
export function select(viewer, token) {
  viewer.view.selected = token < 0 || viewer.view.selected.includes(token) ? [] : [token];
  viewer.touch();
  viewer.tell();
}

/**
 * Go to the next token, group by group.
 * @param {Viewer} viewer
 * @param {number} by    0: leave the tokens
 */
export function selectNext(viewer, by) {
  const { order, colours, recording } = viewer.session,
    from = viewer.view.selected.length ? order.indexOf(viewer.view.selected[0]) : -1;
  if (!recording) return;
  viewer.view.selected = by === 0 ? [] : [order[(Math.max(from, by < 0 ? 0 : -1) + by + order.length) % order.length]];
  viewer.touch();
  viewer.tell();
  const [token] = viewer.view.selected,
    scene = viewer.scene();
  if (by && scene) viewer.say(speakToken(describeToken(viewer, scene, token) || `token ${token}`, colours[token]));
}
