// What a launch may cost: folders, waits and silences, each with its why.
export const launchLimits = {
  /** A program and its small inputs; models and data sets have better ways to travel. */
  folderBytesMax: 64_000_000,
  filesMax: 10_000,
  pathCharsMax: 1024,
  argumentsMax: 1000,
  /** Of a file or a stream in one message: large enough to be quick, small enough to let others pass. */
  partBytesMax: 262_144,
  /** Each machine takes the folder and finds a port within it, also over Wi-Fi. */
  prepareMsMax: 60_000,
  /** A machine that was switched off closes no connection; it is only silent. */
  aliveEveryMs: 1000,
  silenceMsMax: 10_000,
  /** From the end of one rank to the end of the launch, whatever the others do. */
  stopMsMax: 5000,
} as const
