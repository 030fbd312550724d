// Time: the present time of the clock, and its next one.

import { shareOf, timeOf } from './clock.js';

const WHOLE_CLOCK = 11; // seconds from 0 to infinity at speed 1

/** @typedef {import('./types.js').Recording} Recording */

export class Player {
  /** @param {number} t */
  constructor(t) {
    this.t = t;
    this.isPlaying = false;
    this.speed = 1;
  }

  /**
   * Advance by some seconds. Returns false if the clock has reached its end, or must wait for the run.
   * @param {number} seconds
   * @param {Recording} recording
   * @param {boolean} isEndKnown    else the clock stops at the end of the run
   */
  advance(seconds, recording, isEndKnown) {
    const end = recording.times[recording.T - 1],
      share = shareOf(this.t, recording.tau, recording.until) + (seconds * this.speed) / WHOLE_CLOCK;
    const t = timeOf(share, recording.tau, recording.until);
    if (t < end) {
      this.t = t;
      return true;
    }
    if (!recording.complete) {
      this.t = end;
      return true;
    }
    if (!isEndKnown) {
      this.t = end;
      return false;
    }
    this.t = share >= 1 ? Infinity : t;
    return share < 1;
  }

  /**
   * Frame number, with a fraction, and what kind of moment this is.
   * @param {Recording} recording
   * @returns {{position: number, moment: 'run' | 'gap' | 'infinity'}}
   */
  locate(recording) {
    const { T, times, tau, until, complete } = recording,
      last = T - 1,
      end = times[last];
    if (this.t === Infinity) return { position: last, moment: 'infinity' };
    if (this.t > end * (1 + 1e-9)) return { position: last, moment: complete ? 'gap' : 'run' };
    return { position: findPosition(times, last, this.t, tau, until), moment: 'run' };
  }

  /**
   * Move by frames, from one end of the clock to the other.
   * @param {number} frames
   * @param {Recording} recording
   */
  step(frames, recording) {
    const last = recording.T - 1,
      end = recording.times[last];
    if (this.t > end && frames > 0) {
      this.t = Infinity;
      return;
    }
    if (this.t > end) {
      this.t = end;
      return;
    }
    const from = Math.round(this.locate(recording).position),
      isStack = recording.until !== undefined,
      to = from + (isStack ? Math.sign(frames) : frames); // for a stack, one step is one layer
    this.t = frames > 0 && from === last && !isStack ? Infinity : recording.times[Math.min(last, Math.max(0, to))];
  }
}

/**
 * The frame number of a time, with a fraction that is even on the clock. Recordings of layers have other times than runs.
 * @param {Float64Array} times
 * @param {number} last
 * @param {number} t
 * @param {number} tau
 * @param {number} [until]
 */
function findPosition(times, last, t, tau, until) {
  let low = 0,
    high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle;
  }
  const from = shareOf(times[low], tau, until),
    to = shareOf(times[high], tau, until);
  return low + (to > from ? Math.min(1, Math.max(0, (shareOf(t, tau, until) - from) / (to - from))) : 0);
}
