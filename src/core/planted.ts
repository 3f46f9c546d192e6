// Bugs that the simulator's own tests plant, one at a time, to prove that its checkers see them. Every
// switch is off and nothing in the program can turn one on: the type is read-only, and only
// src/simulator/plant.ts casts that away. Each is one small condition where the real code could have
// been wrong.

export interface Planted {
  /** The highest epoch is kept in memory only. */
  readonly volatileEpoch: boolean
}

export const planted: Planted = {
  volatileEpoch: false,
}
