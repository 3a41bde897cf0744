// Colours for Go and JSON: a list of [kind, text] whose texts joined are the source. It never makes markup.
const go = /(?<comment>\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))|(?<string>"(?:[^"\\\n]|\\.)*"?|`[^`]*`?|'(?:[^'\\\n]|\\.)*'?)|(?<number>\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?)\b)|(?<keyword>\b(?:break|case|chan|const|continue|default|defer|else|fallthrough|for|func|go|goto|if|import|interface|map|package|range|return|select|struct|switch|type|var)\b)|(?<builtin>\b(?:any|bool|byte|error|float64|int|int64|rune|string|uint8|nil|true|false|append|cap|copy|delete|len|make|max|min|new|panic|recover|recurgent)\b)|(?<call>\b[A-Za-z_]\w*(?=\())/g;
const json = /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\]|\\.)*"?)|(?<number>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(?<keyword>\b(?:true|false|null)\b)/g;

/** @param {string} text @param {string} lang go, json or text @returns {[string, string][]} */
export function tokens(text, lang) {
  const rule = lang === 'go' ? go : lang === 'json' ? json : null;
  if (!rule) return [['', text]];
  const out = /** @type {[string, string][]} */ ([]);
  let at = 0;
  for (const m of text.matchAll(rule)) {
    if (m.index > at) out.push(['', text.slice(at, m.index)]);
    const kind = Object.entries(m.groups || {}).find(([, v]) => v !== undefined)?.[0] || '';
    out.push([kind, m[0]]);
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push(['', text.slice(at)]);
  return out;
}
