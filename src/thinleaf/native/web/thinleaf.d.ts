/** A text, a dense row, or with `values` the indices of a sparse one. */
export type Input = string | ArrayLike<number>;
export type Label = string | number | bigint | boolean;

export interface Answer {
  id: number;
  label: Label;
  probability: number;
}

export interface Step {
  /** Of the tree, from the root on. */
  node: number;
  /** Which child comes next: 0 is left, 1 is right. */
  branch: number;
  /** w·x + b of a router; of a label tree, the logarithm of the probability of the branch. */
  score: number;
}

export class ModelError extends Error {
  /** As in thinleaf.h: negative. */
  status: number;
}

export class Model {
  /** Of the bytes of a model file; after `init`. */
  constructor(content: Uint8Array);
  readonly nFeatures: number;
  readonly nClasses: number;
  readonly nTrees: number;
  readonly depth: number;
  readonly takesTexts: boolean;
  /** The label of an input. Integers beyond 2^53 are bigints. */
  predict(x: Input, values?: ArrayLike<number>): Label;
  /** The same as the number of a class. */
  predictId(x: Input, values?: ArrayLike<number>): number;
  /** The k most probable labels, best first. */
  topk(x: Input, k?: number, values?: ArrayLike<number>): Answer[];
  /** The steps of an input in one tree, and the number of the leaf at the end; of a label tree, the class. */
  path(x: Input, tree?: number, values?: ArrayLike<number>): { steps: Step[]; end: number };
  label(id: number): Label;
}

/** Compile the WebAssembly file, by default the one beside this module. */
export function init(wasm?: string | URL | BufferSource | WebAssembly.Module): Promise<void>;

/** Open a model file: its bytes, or where it is. It is checked whole; `ModelError` if it is damaged. */
export function load(source: string | URL | BufferSource): Promise<Model>;
