// The buttons of the footer: they copy or save something and tell the reader.

import { asPython, asToml } from './copies.js';
import { element } from './dom.js';
import { copyText, filmKind, paintFrame, recordFilm, savePng, saveSvg } from './export.js';
import { drawStage } from './stage.js';
import { makeTable, openDialog } from './table.js';
import { formatTime } from './words.js';

/** @typedef {import('./viewer.js').Viewer} Viewer */

/**
 * @param {Viewer} viewer
 * @param {string} name   data-copy of the button
 */
export async function copyOut(viewer, name) {
  const { session, layout, area } = viewer,
    file = `attnlab_${viewer.preset?.id ?? 'run'}`;
  const paint = (/** @type {CanvasRenderingContext2D} */ g) => paintPicture(viewer, g);
  try {
    if (name === 'link') await copyWords(viewer, 'Link', viewer.link());
    else if (name === 'python') await copyWords(viewer, 'Python', session.recording?.python ?? asPython(session.spec));
    else if (name === 'toml') await copyWords(viewer, 'TOML', asToml(session.spec));
    else if (name === 'png') {
      await savePng(paint, area.width, area.height, `${file}.png`);
      viewer.say('Picture saved.');
    } else if (name === 'svg') {
      saveSvg(paint, area.width, area.height, `${file}.svg`);
      viewer.say('Picture saved.');
    } else if (name === 'film') await makeFilm(viewer, file);
    else if (name === 'data' && session.recording) {
      openDialog(
        layout.dialog,
        'Groups',
        viewer.isSecret
          ? 'First guess how many limits there will be.'
          : makeTable(session.recording, session.outcome, session.colours, viewer.show.has('shapes')),
      );
    }
  } catch (problem) {
    viewer.say(problem instanceof Error ? problem.message : String(problem));
  }
}

/**
 * Copy text. If the browser forbids it, show the text, selected.
 * @param {Viewer} viewer
 * @param {string} what
 * @param {string} text
 */
async function copyWords(viewer, what, text) {
  if (await copyText(text)) {
    viewer.say(`${what} copied.`);
    return;
  }
  const area = element('textarea', { readonly: true, rows: 12, 'aria-label': what }, text);
  openDialog(viewer.layout.dialog, `${what}: copy it from here`, area);
  area.select();
}

/**
 * The stage with its titles, as it is exported.
 * @param {Viewer} viewer
 * @param {CanvasRenderingContext2D} g
 */
export function paintPicture(viewer, g) {
  const scene = viewer.scene(),
    { layout, area, theme, player } = viewer;
  if (!scene) return;
  paintFrame(g, {
    width: area.width,
    height: area.height,
    theme,
    equation: layout.equation,
    numbers: layout.numbers.textContent ?? '',
    time: formatTime(player.t),
    counts: layout.counts.textContent ?? '',
  });
  drawStage(g, { ...area, bottom: Math.min(area.bottom, 24) }, { ...scene, hover: -1 });
}

/**
 * Play from the start and record it; a second press stops.
 * @param {Viewer} viewer
 * @param {string} file
 */
async function makeFilm(viewer, file) {
  const { player, session, area } = viewer,
    { recording } = session;
  if (viewer.film) {
    viewer.film.stop();
    return;
  }
  if (!recording) return;
  if (!filmKind()) throw new Error('This browser cannot record films. Use al.movie in Python.');
  const before = player.t;
  player.t = 0;
  viewer.say('Recording a film. Press Film again to stop.');
  viewer.film = recordFilm(
    (g) => paintPicture(viewer, g),
    area.width,
    area.height,
    file,
    (seconds) => {
      viewer.touch();
      return player.advance(seconds, recording, session.outcome.kind !== 'open');
    },
  );
  viewer.touch();
  await viewer.film.done;
  viewer.film = null;
  player.t = before;
  viewer.touch();
  viewer.say('Film saved.');
}
