// The viewer: it joins engine, stage, charts and controls. Nothing else knows both the numbers and the pictures.

import { writeAddress } from './address.js';
import { DEFAULT_CAMERA, fitBox, kindOf } from './camera.js';
import { clockSpan, createClock } from './clock.js';
import { createControls, readLocks } from './controls.js';
import { asPython, asToml } from './copies.js';
import { copyPicture, copyWords } from './copying.js';
import { prepareCanvas, setText } from './dom.js';
import { writeEigenvalues } from './eigenvalues.js';
import { isSameSpec } from './equal.js';
