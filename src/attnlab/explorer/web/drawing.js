// Draw one frame of the screen: from the viewer's state to a scene, to pictures and to the words that change with time.

import { fitBox, kindOf } from './camera.js';
import { clockSpan } from './clock.js';
import { prepareCanvas, setText } from './dom.js';
import { countFollowers, currentLeaders, currentShares } from './scene.js';
import { drawStage } from './stage.js';
import { describeLeader, describeMoment, describeNow, describeRow, formatLayer, formatTime } from './words.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

const NARROW = 520; // pixels of the stage
const SLOW = 12; // milliseconds of drawing above which the picture becomes simpler
const TRAILS = [0.42, 0.24, 0.12]; // lengths of trails, as shares of the clock

/**
 * What the stage shows now, or null before the first run.
 * @param {Viewer} viewer
 * @returns {import('./scene.js').Scene | null}
 */
export function makeScene(viewer) {
  const { session, view, player, theme } = viewer,
    { recording, outcome, colours } = session;
  if (!recording) return null;
  const { position, moment } = player.locate(recording),
    frame = recording.geometry === 'sphere' ? 'limit' : view.frame;
  const frames = session.framesOf(frame),
    looked = viewer.hover >= 0 ? viewer.hover : (view.selected[0] ?? -1);
  const show = viewer.isSecret ? new Set([...viewer.show].filter((name) => name !== 'limits')) : viewer.show;
  return {
    kind: kindOf(recording),
    recording,
    frames,
    frame,
    position,
    moment,
    outcome,
    theme,
    show,
    hover: viewer.hover,
    selected: view.selected,
    box: findBox(viewer, frames, frame, position),
    view: view.camera,
    quality: viewer.quality,
    row: looked >= 0 ? viewer.rowOf(looked) : null,
    places: moment === 'infinity' && frame === 'limit' && !viewer.isSecret ? session.places : null,
    colours: viewer.isSecret ? new Int32Array(recording.n).fill(-1) : colours,
  };
}

/**
 * The box of the picture: of the whole run, and of its limits; in frames that grow without bound, of this moment.
 * @param {Viewer} viewer
 * @param {Float32Array} frames
 * @param {'limit' | 'z' | 'x'} frame
 * @param {number} position
 */
function findBox(viewer, frames, frame, position) {
  const { recording, outcome } = viewer.session;
  if (!recording) return { centre: [0, 0, 0], half: [1, 1, 1] };
  if (frame !== 'limit') return fitBox(recording, frames, Math.floor(position), Math.min(Math.ceil(position), recording.T - 1));
  if (viewer.hands?.isHolding() && viewer.box) return viewer.box; // a handle must stay under the pointer
  const wanted = recording.box ? structuredClone(recording.box) : fitBox(recording, frames);
  for (const point of recording.geometry === 'sphere' ? [] : outcome.points) {
    point.forEach((value, c) => {
      wanted.half[c] = Math.max(wanted.half[c], Math.abs(value - wanted.centre[c]));
    });
  }
  const before = viewer.box;
  if (!before || viewer.isReduced) return (viewer.box = wanted);
  let rest = 0;
  for (const key of /** @type {const} */ (['centre', 'half'])) {
    wanted[key].forEach((value, c) => {
      const step = value - before[key][c];
      rest = Math.max(rest, Math.abs(step) / wanted.half[c]);
      before[key][c] = Math.abs(step) < 1e-3 * wanted.half[c] ? value : before[key][c] + 0.25 * step;
    });
  }
  if (rest > 1e-3) viewer.touch(); // it changes to its new size slowly
  return before;
}

/**
 * Draw everything that is on the screen.
 * @param {Viewer} viewer
 */
export function drawAll(viewer) {
  const begin = performance.now(),
    { layout, session } = viewer,
    { g, width, height } = prepareCanvas(layout.scene);
  viewer.isDirty = false;
  const scene = makeScene(viewer);
  if (!scene || !width) return;
  layout.hint.hidden = !viewer.show.has('drag'); // before the area is measured: it leaves room for the hint
  viewer.area = measure(viewer, width, height);
  viewer.drawn = drawStage(g, viewer.area, scene);
  const { recording, theme } = scene,
    numbers = countNow(viewer, scene),
    time = formatTime(viewer.player.t);
  setText(layout.letter, recording.until === undefined ? 't' : 'layer');
  setText(layout.time, recording.until === undefined ? ` = ${time}` : ` ${formatLayer(viewer.player.t)}`);
  const isUnknown = viewer.isSecret || (scene.moment === 'infinity' && session.outcome.kind === 'open');
  setText(layout.counts, isUnknown ? '' : describeNow(recording, numbers));
  writeMoment(viewer, scene);
  writeTip(viewer, scene);
  const now = viewer.player.t === Infinity ? 't = infinity' : (layout.letter.parentElement?.textContent ?? '');
  const spoken = `${now}, ${layout.counts.textContent}`;
  viewer.clock.draw({ recording, outcome: session.outcome, t: viewer.player.t, theme, isSecret: viewer.isSecret, spoken });
  drawPanels(viewer, scene, numbers.leaders);
  adapt(viewer, performance.now() - begin);
}

/**
 * The area of the stage without its titles, and the left and right end of the clock.
 * @param {Viewer} viewer
 * @param {number} width
 * @param {number} height
 */
function measure({ layout, clock }, width, height) {
  const { node: canvas } = clock,
    offset = canvas.offsetLeft - layout.scene.offsetLeft,
    span = clockSpan(canvas.clientWidth);
  const above = layout.paint.getBoundingClientRect().top;
  const titles = [layout.numbers, layout.counts].map((node) => node.getBoundingClientRect().bottom - above);
  const isNarrow = width < NARROW && !layout.hint.hidden; // there the hint of drag mode has the whole width
  const under = layout.under.offsetHeight + (isNarrow ? layout.hint.offsetHeight + 8 : 0);
  const top = Math.max(44, ...titles.map((bottom) => bottom + 6));
  return { width, height, top, bottom: under > 4 ? under + 12 : 12, left: offset + span.left, right: offset + span.right };
}

/**
 * @param {Viewer} viewer
 * @param {import('./scene.js').Scene} scene
 */
function countNow({ session }, scene) {
  const { recording, moment, position, places } = scene,
    at = Math.round(position / recording.every);
  const leaders = countFollowers(currentLeaders(scene)).reduce((sum, followers) => sum + Number(followers > 0), 0);
  if (moment === 'infinity' && session.outcome.kind !== 'open')
    return { groups: session.outcome.count, leaders: places ? leaders : 0, listened: 0 };
  /** @param {Float32Array} series */
  const value = (series) =>
    series[Math.min(at, series.length - 1)] || series[Math.max(0, Math.min(at, series.length - 1) - 1)] || 0;
  return { groups: value(recording.groups), leaders, listened: value(recording.listened) };
}

/**
 * The sentence over the stage: there are no points here, or they are unreliable.
 * @param {Viewer} viewer
 * @param {import('./scene.js').Scene} scene
 */
function writeMoment({ layout, session, player, isSecret }, scene) {
  const isClosed = isSecret && scene.moment === 'infinity';
  const text = isClosed
    ? 'First guess how many limits there will be.'
    : describeMoment(scene.recording, session.outcome, scene.moment, player.t);
  layout.veil.hidden = !text;
  layout.veil.classList.toggle('centre', scene.moment === 'infinity' && !scene.places);
  setText(layout.veil, text);
}

/**
 * Describe what a token attends to; empty while that is unknown.
 * @param {Viewer} viewer
 * @param {import('./scene.js').Scene} scene
 * @param {number} token
 */
export function describeToken(viewer, scene, token) {
  const row = viewer.rowOf(token);
  if (row) return describeRow(scene.recording, token, row);
  if (viewer.session.engine) return '';
  return describeLeader(scene.recording, token, currentLeaders(scene)[token] ?? -1, currentShares(scene)?.[token]);
}

/**
 * @param {Viewer} viewer
 * @param {import('./scene.js').Scene} scene
 */
function writeTip(viewer, scene) {
  const { layout, hover, tipAt, area } = viewer,
    text = describeToken(viewer, scene, Math.max(0, hover));
  layout.tip.hidden = hover < 0 || !text;
  if (layout.tip.hidden) return;
  setText(layout.tip, text);
  const half = layout.tip.offsetWidth / 2 + 6;
  layout.tip.style.left = `${Math.min(area.width - half, Math.max(half, tipAt[0]))}px`;
  layout.tip.style.top = `${Math.max(30, tipAt[1] - 14)}px`;
}

/**
 * The charts beside the stage, where they are visible.
 * @param {Viewer} viewer
 * @param {import('./scene.js').Scene} scene
 * @param {number} leaders
 */
function drawPanels(viewer, scene, leaders) {
  const { session, layout, plane, heat, sweep, theme, locks } = viewer,
    { recording, moment } = scene,
    isSphere = recording.geometry === 'sphere';
  if (layout.spectrumPart.offsetParent) {
    const lock =
      locks.has('spectrum') || locks.has('controls')
        ? 'The spectrum is locked.'
        : session.engine
          ? session.spectrum.lock
          : 'A recording: V cannot be changed.';
    plane.draw({ values: session.spectrum.values, lock, isSphere, theme });
    setText(layout.dragWord, lock ? 'locked' : 'drag');
    layout.dragWord.title = lock;
  }
  if (layout.heatPart.offsetParent) {
    if (moment !== 'infinity' && !isTooSoon(viewer)) session.ask(moment === 'gap' ? 'end' : viewer.player.t);
    const isKnown = session.engine || moment === 'infinity',
      P = isKnown ? viewer.matrix() : session.matrixOf(currentLeaders(scene), currentShares(scene)),
      word =
        isSphere || !leaders || viewer.isSecret || !layout.head.hidden
          ? ''
          : leaders === 1
            ? '1 column leads'
            : `${leaders} columns lead`;
    setText(layout.lead, session.engine || !word ? word : 'largest entry of each row');
    heat.draw({
      P,
      n: recording.n,
      order: viewer.isSecret ? Array.from(scene.colours.keys()) : session.order,
      colours: scene.colours,
      theme,
      hover: viewer.hover,
      spoken: `Attention matrix of ${recording.n} tokens, in the order of the final groups. ${word}${
        session.engine ? '' : ' A recording has only the largest entry of each row.'
      }`,
    });
  } else if (scene.hover >= 0 || scene.selected.length) session.ask(moment === 'run' ? viewer.player.t : 'end');
  if (sweep.node.offsetParent) sweep.draw(theme);
}

/**
 * Whether the attention of many tokens was requested very recently. While playing, a few matrices per second are enough.
 * @param {Viewer} viewer
 */
function isTooSoon(viewer) {
  const now = performance.now();
  if ((viewer.session.recording?.n ?? 0) > 250 && viewer.player.isPlaying && now - viewer.askedAt < 300) return true;
  viewer.askedAt = now;
  return false;
}

/**
 * A slow screen gets shorter trails, then no glow.
 * @param {Viewer} viewer
 * @param {number} cost    milliseconds
 */
function adapt(viewer, cost) {
  viewer.costs.push(cost);
  if (viewer.costs.length < 40) return;
  const middle = [...viewer.costs].sort((a, b) => a - b)[viewer.costs.length >> 1],
    next = TRAILS[TRAILS.indexOf(viewer.quality.trail) + 1];
  viewer.cost = middle;
  viewer.costs = [];
  if (middle <= SLOW) return;
  if (next) viewer.quality = { ...viewer.quality, trail: next };
  else viewer.quality = { ...viewer.quality, glow: false };
}
