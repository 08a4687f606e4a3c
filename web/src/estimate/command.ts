// The command that prints the same answer.

import type { Settings } from "./messages";

/** `xmem estimate model.pt2 --device t4-16g --batch 32`. */
export function commandLine(name: string, settings: Settings): string {
  const words = ["xmem", "estimate", quoted(name), "--device", settings.device];
  if (settings.training === true) words.push("--training");
  if (settings.training === false) words.push("--inference");
  const options: [string, string | number | undefined][] = [
    ["--batch", settings.batch],
    ["--length", settings.length],
    ["--optimizer", settings.optimizer],
    ["--loss", settings.loss],
    ["--accumulation", settings.accumulation],
    ["--autocast", settings.autocast],
    ["--dtype", settings.dtype],
    ["--checkpoint", settings.checkpoints && quoted(settings.checkpoints.join(","))],
  ];
  for (const [option, value] of options) if (value !== undefined) words.push(option, value.toString());
  return `${words.join(" ")} --cudnn model`;
}

/** A word as a shell takes it. */
function quoted(word: string): string {
  return /^[\w.,/:=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
