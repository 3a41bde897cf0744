// What follows from an operation, in words, to be read before it is confirmed.

/** Effects by the end of a path. @type {[RegExp, (body: any) => string][]} */
const effects = [
  [/\/approve$/, (b) => `${b?.generation || 'The program'} may answer calls from then on.`],
  [/\/effects$/, () => 'The method\u2019s programs may reach what is listed here from then on.'],
  [/\/rollback$/, (b) => `${b?.generation || 'The earlier program'} answers calls from then on. The current program stays kept.`],
  [/\/quarantine$/, () => 'Stored programs of the method answer no calls until it is released. Each call asks the model for a program, which is not kept.'],
  [/\/release$/, () => 'Stored programs of the method answer calls again.'],
  [/\/regenerate$/, () => 'The next call asks the model for a new program.'],
  [/\/examples\/[^/]+\/accept$/, () => 'Every later program of the method must give this answer before it serves.'],
  [/\/recommendations\/[^/]+\/apply$/, () => 'The recommended change takes effect.'],
  [/\/accept$/, () => 'The contract applies to the calls of the role from then on.'],
  [/\/(reject|dismiss)$/, () => 'It leaves the inbox, and nothing else changes.'],
  [/\/verdict$/, (b) => ({ right: 'The answer becomes an example, which every later program must give.', wrong: 'The answer counts as wrong, and the program is corrected as the policy says.' })[/** @type {'right'} */ (b?.verdict)] || 'The verdict and its example are dropped.'],
];

/** follows says what an operation leads to, '' where that is not known. @param {{path: string, body?: any}} of */
export const follows = ({ path, body }) => effects.find(([end]) => end.test(path))?.[1](body) || '';
