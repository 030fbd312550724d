// The records of the explorer as JSDoc types. This file describes the design. Its only code is the version.
// Arrays of tokens are row-major: time first, then token, then coordinate. "Spec's coordinates" are those of the Spec's V.

/** The version of the payload and of the state in the address. */
export const VERSION = 1;

/**
 * A table of a Spec, as parsed from JSON.
 * @typedef {{[key: string]: any}} Table
 */

/**
 * A whole run as words and numbers, exactly what `Spec.to_dict()` writes.
 * @typedef {object} Spec
 * @property {Table} weights    family, and its parameters
 * @property {Table} start      law, n, d, rng, parameters; moved: {"5": [1.2, 1.9]} has tokens put elsewhere by hand
 * @property {Table} solve      t_end or layers, times or saves, rtol, ...
 * @property {Table} [dynamics] beta, geometry, kernel, mask, feedforward
 * @property {string[]} [observe]
 */

/**
 * The view of a picture; nothing here changes the run.
 * @typedef {object} View
 * @property {number | 'inf'} t
 * @property {'limit' | 'z' | 'x'} frame
 * @property {[number, number, number]} camera   yaw, pitch, zoom
 * @property {string[]} show
 * @property {number[]} selected
 * @property {'auto' | 'light' | 'dark'} theme
 */

/**
 * Everything the address holds.
 * @typedef {object} State
 * @property {number} version
 * @property {Spec} spec
 * @property {View} view
 * @property {string} [preset]
 */

/**
 * A limit that Python certified. It holds only for the Spec inside it.
 * @typedef {object} CertifiedLimit
 * @property {Spec} spec
 * @property {'exact' | 'group'} grade
 * @property {number | null} count     null where no direction grows; placeCount then
 * @property {number} [placeCount]
 * @property {number[]} labels         one per token
 * @property {number[]} leaders        one per token; -1 is open
 * @property {number[][]} points       one per label, Spec's coordinates: its projection on the growing directions, or the place
 * @property {number} t
 * @property {number | null} lastEvent
 * @property {number} events
 * @property {number} error
 * @property {string} certificate
 * @property {string} reason
 */

/**
 * @typedef {object} Preset
 * @property {string} id
 * @property {string} name
 * @property {string} watch            two sentences on what to look at
 * @property {Spec} spec
 * @property {CertifiedLimit} [limit]
 * @property {[number, number, number]} [camera]
 * @property {EmbeddedRecording} [recording]   what this preset shows, where the page does not integrate it
 */

/**
 * The matrices that Python resolved, if the page cannot make them from the Spec.
 * @typedef {object} ResolvedWeights
 * @property {Spec} spec               the Spec it belongs to; only `weights` counts
 * @property {number[][][]} M          one matrix per head
 * @property {number[][][]} V          one matrix per head
 */

/**
 * A run that Python computed, packed. `recording.py` writes it, the viewer unpacks it into a Recording.
 * @typedef {{[key: string]: any}} EmbeddedRecording
 */

/**
 * The record in a page.
 * @typedef {object} Payload
 * @property {number} version
 * @property {State} state
 * @property {string[]} hide
 * @property {string[]} lock
 * @property {boolean} guess
 * @property {CertifiedLimit[]} limits
 * @property {{spec: Spec, cite: string, says: string}[]} says
 * @property {Preset[]} presets
 * @property {ResolvedWeights} [resolved]
 * @property {EmbeddedRecording} [recording]
 * @property {string} [title]
 */

/**
 * How a run ended: the names of attnlab.types.Status.
 * @typedef {'OK' | 'MAX_STEPS' | 'STALLED' | 'NON_FINITE' | 'PAST_DOUBLE_PRECISION' | 'INTERRUPTED'} Status
 */

/**
 * One head: scores beta x_i . M x_j, values V x_j. Rows of numbers.
 * @typedef {object} Head
 * @property {number[][]} M
 * @property {number[][]} V
 */

/**
 * The matrices of a run. `basis` is a real eigenbasis of `total`, in which it is block diagonal. If total has none that double
 * precision can use, isEigenbasis is false, and basis and inverse are the identity; growth and turn are still those of total.
 * @typedef {object} ResolvedMatrices
 * @property {number} d
 * @property {Head[]} heads            in the Spec's coordinates
 * @property {number[][]} total        the sum of all V
 * @property {number[][]} basis        (d, d); its columns are the eigenvectors
 * @property {number[][]} inverse
 * @property {boolean} isEigenbasis
 * @property {number[]} growth         real parts of the eigenvalues, one per column of the basis
 * @property {number[]} turn           imaginary part b at the first of the two columns of a pair a +- ib, else 0
 * @property {number[]} group          columns with equal growth have equal numbers; all 0 where there is no eigenbasis
 * @property {Head[]} eigenHeads       in the coordinates of the basis
 */

/**
 * The page's estimate of t = infinity, by the frozen-leader test. It is never a certificate.
 * @typedef {object} Estimate
 * @property {boolean} holds
 * @property {string} why              a sentence, also where it does not hold
 * @property {boolean} [isStill]       V = 0: labels are places, and no token follows another
 * @property {number[]} leaders        one per token; empty where it does not hold
 * @property {number[]} labels         one per token, the largest group first; empty where it does not hold
 * @property {number} count            0 where it does not hold
 * @property {number[][]} points       one per label, Spec's coordinates
 */

/**
 * A run as the viewer plays it: frames for drawing, leaders, a few series. A worker computes it, or Python did.
 * While it grows, `complete` is false and T counts the frames so far; arrays have room for all frames.
 * @typedef {object} Recording
 * @property {number} n
 * @property {number} d
 * @property {number} T                      frames that are there
 * @property {Float64Array} times            (T); equally spaced in u = t / (t + tau)
 * @property {number} tau
 * @property {boolean} complete
 * @property {{limit: Float32Array, x?: Float32Array, z?: Float32Array}} frames   (T, n, 3) each; unused coordinates are 0
 * @property {Int16Array} leaders            (T, n); -1 where there is none, or heads disagree
 * @property {Float32Array} [shares]         (T, n) of attention that goes to the leader; of recordings that Python made
 * @property {number} every                  the series have one number per `every` frames
 * @property {Float32Array} groups           number of groups at 1 % of the first diameter
 * @property {Float32Array} listened         e^entropy, averaged over the rows: how many tokens a row attends to
 * @property {Int32Array} labels             (n) groups at the end, the largest is 0
 * @property {number} count                  how many of them
 * @property {Float64Array} changes          times at which some leader changes
 * @property {number[][]} x0
 * @property {number[][]} basis
 * @property {number[]} growth
 * @property {number[]} turn
 * @property {'euclidean' | 'sphere'} geometry
 * @property {Status} status
 * @property {string} sentence               the sentence of the status
 * @property {number} trusted                the time up to which double precision is trusted; may be Infinity
 * @property {Estimate | null} estimate
 * @property {string} [estimateWhy]          why there is no estimate, where it is null
 * @property {number} steps
 * @property {number} evaluations
 * @property {number} milliseconds
 * @property {string[]} [words]              one per token
 * @property {any} [layers]
 * @property {boolean} [isEmbedded]
 * @property {string[]} [axes]
 * @property {number} [until]                the clock is even and ends here, after the last layer; else it ends at infinity
 * @property {import('./camera.js').Box} [box]     of the picture, where several recordings share it
 * @property {number} [heads]                of the equation, where the page does not know the weights
 * @property {string} [equation]             in place of the equation of the Spec
 * @property {string} [numbers]              in place of the line under the equation
 * @property {{kind: 'certified' | 'open' | 'end', mark: string, text: string}} [ending]   what is known about the end, in words
 * @property {string} [python]               code that makes this recording
 */

/**
 * @typedef {object} RecordOptions
 * @property {number} [frames]               480; 160 while dragging
 * @property {number} [rtol]
 * @property {boolean} [untilSettled]        end as soon as the estimate holds; for sweeps
 */

/**
 * @typedef {object} SweepRequest
 * @property {Spec} spec
 * @property {string} path                   'dynamics.beta', 'start.n' or 'weights.eigenvalues.0', ...
 * @property {number[]} values
 * @property {number} seeds                  starts per value: rng = 0, 1, ...
 * @property {number} [n]                    tokens, where other than the Spec's
 */

/**
 * One run of a sweep. `settled` is a full dot: the frozen-leader test holds. Else `count` is only groups at the end of the run.
 * @typedef {object} SweepPoint
 * @property {number} value
 * @property {number} rng
 * @property {number} count
 * @property {boolean} settled
 * @property {Status} status
 */

/**
 * @typedef {object} RunResult
 * @property {number[]} times
 * @property {number[][][]} x                (T, n, d), Spec's coordinates
 * @property {Status} status
 */

/**
 * The numerics, from the main thread. Promises reject with a Refusal (a sentence), or with Error('superseded').
 * @typedef {object} Engine
 * @property {(spec: Spec, options?: RecordOptions, onPiece?: (recording: Recording) => void) => Promise<Recording>} record
 *           the newest request wins; older ones reject with 'superseded'
 * @property {(spec: Spec, t: number | 'end', head?: number) => Promise<{P: Float32Array, n: number}>} attention   (n, n)
 * @property {(spec: Spec, token: number, t: number | 'end', head?: number) => Promise<Float32Array>} row   (n)
 * @property {(request: SweepRequest, onPoint: (point: SweepPoint) => void) => Promise<void>} sweep
 * @property {(spec: Spec) => Promise<RunResult>} run
 * @property {() => void} stop               ends running recordings and sweeps
 * @property {() => void} stopSweep            recordings go on
 * @property {() => void} destroy
 * @property {'worker' | 'slices'} mode
 */
