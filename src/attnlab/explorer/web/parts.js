// The parts of the screen, their messages to the viewer, and its listeners for keys, pointers, sizes and themes.

import {
  changeRun,
  choosePreset,
  editRun,
  lookAt,
  moveStart,
  nudge,
  play,
  seek,
  select,
  selectNext,
  step,
  takeNextStart,
  toggleShow,
} from './actions.js';
import { createClock } from './clock.js';
import { createControls } from './controls.js';
import { copyOut } from './copy_buttons.js';
import { element, fill } from './dom.js';
import { writeEigenvalues } from './eigenvalues.js';
import { createHeat } from './heat.js';
import { watchKeys, writeKeys } from './keys.js';
import { createLayout } from './layout.js';
import { createPlane } from './plane.js';
import { watchPointer } from './pointer.js';
import { createSwitches } from './switches.js';
import { SweepPanel } from './sweep_panel.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * Make the parts of the screen.
 * @param {Viewer} viewer
 */
export function createParts(viewer) {
  const { session, locks, hide, payload, options } = viewer;
  const clock = createClock({ onSeek: (t, isDone) => seek(viewer, t, isDone) });
  const plane = createPlane({
    onMove: (values, isDone) => changeRun(viewer, writeEigenvalues(session.spec, values), { isDone }),
    onHold: (isHeld) => {
      const { watchCard } = layout; // words above the spectrum must not move it away from the pointer
      watchCard.style.height = isHeld ? `${watchCard.offsetHeight}px` : '';
    },
  });
  const heat = createHeat({ onHover: (token) => lookAt(viewer, token, null), onSelect: (token) => select(viewer, token) });
  const controls = createControls(
    {
      onSpec: (edit, isDone, isNewStart) => editRun(viewer, edit, isDone, isNewStart),
      onFrame: (frame) => viewer.setFrame(frame),
    },
    locks,
  );
  const switches = createSwitches((name) => toggleShow(viewer, name), locks);
  const sweep = new SweepPanel(session, {
    onLoad: (spec) => changeRun(viewer, spec, { keepColours: false }),
    onSay: (text) => viewer.say(text),
    onDraw: () => viewer.touch(),
  });
  const layout = createLayout(
    { clock: clock.node, plane: plane.node, heat: heat.node, setup: controls.setup, chips: switches.node, sweep: sweep.node },
    hide,
  );
  layout.root.classList.toggle('embedded', Boolean(options.isEmbedded));
  layout.root.classList.toggle('page', Boolean(options.isPage));
  fill(
    layout.presets,
    ...(payload.presets ?? []).map((preset) =>
      element(
        'button',
        { type: 'button', 'data-preset': preset.id, onclick: () => choosePreset(viewer, preset.id) },
        preset.name,
      ),
    ),
  );
  layout.play.addEventListener('click', () => play(viewer, !viewer.player.isPlaying));
  layout.speed.value = '1';
  layout.speed.addEventListener('change', () => {
    viewer.player.speed = Number(layout.speed.value);
  });
  layout.theme.addEventListener('click', () => viewer.nextTheme());
  layout.head.addEventListener('change', () => viewer.setHead(Number(layout.head.value)));
  layout.copies.addEventListener('click', (event) => {
    const name = event.target instanceof HTMLElement ? event.target.dataset.copy : undefined;
    if (name) copyOut(viewer, name);
  });
  writeKeys(layout.keysHelp, hide);
  return { layout, clock, plane, heat, controls, switches, sweep };
}

/**
 * Listen to keys, sizes, themes, other viewers, and pointers on the stage.
 * @param {Viewer} viewer
 */
export function watchReader(viewer) {
  const {
    layout: { scene, root, aside },
    ended: { signal },
    payload,
    hide,
    options,
  } = viewer;
  watchKeys(
    options.isPage ? document.body : root,
    scene,
    {
      toggle: () => play(viewer, !viewer.player.isPlaying),
      step: (frames) => step(viewer, frames),
      toStart: () => seek(viewer, 0, true),
      toInfinity: () => seek(viewer, Infinity, true),
      choosePreset: (index) => {
        if (payload.presets?.[index]) choosePreset(viewer, payload.presets[index].id);
      },
      nextStart: () => takeNextStart(viewer),
      nextTheme: () => viewer.nextTheme(),
      nextToken: (by) => selectNext(viewer, by),
      nudge: (dx, dy) => nudge(viewer, dx, dy),
      scene: () => viewer.scene(),
      setView: (camera) => viewer.setCamera(camera, true),
    },
    hide,
    signal,
  );
  const sizes = new ResizeObserver(() => viewer.touch());
  sizes.observe(root);
  const eye = new IntersectionObserver(([entry]) => viewer.setVisible(entry.isIntersecting));
  eye.observe(root);
  signal.addEventListener('abort', () => {
    sizes.disconnect();
    eye.disconnect();
  });
  aside.addEventListener('tab', () => viewer.touch());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => viewer.setTheme(viewer.view.theme), { signal });
  document.addEventListener(
    'attnlab-play',
    (event) => {
      if (event instanceof CustomEvent && event.detail !== viewer) play(viewer, false); // one viewer plays at a time
    },
    { signal },
  );
  return watchPointer(scene, {
    look: () => {
      const now = viewer.scene();
      return now && { scene: now, area: viewer.area, drawn: viewer.drawn };
    },
    homes: () => viewer.session.homes,
    canDrag: () => viewer.show.has('drag'),
    onHover: (token, x, y) => lookAt(viewer, token, [x, y]),
    onSelect: (token) => select(viewer, token),
    onView: (camera, isDone) => viewer.setCamera(camera, isDone),
    onMove: (token, place, isDone) => moveStart(viewer, token, place, isDone),
  });
}
