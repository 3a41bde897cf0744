package reply

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// A mark is a token that models write around their thoughts.
type mark int

const (
	markNone  mark = iota
	markOpen       // thoughts begin
	markClose      // everything before it was thought
)

const thought = `(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|cot|analysis)`

// marks matches the known marks of models and servers, and similar ones. A server may swallow the opening mark with its
// prompt.
var marks = lazy.Regexp(strings.Join([]string{
	// DeepSeek, Qwen, GLM, MiniMax, Seed, LongCat, EXAONE
	`(?i:</?(?:[\w-]{1,20}[:_])?` + thought + `(?:\s[^<>\n]{0,80})?>)`,
	// Mistral
	`\[/?(?:THINK(?:ING)?|THOUGHTS?|REASONING)\]`,
	// Cohere, Sky-T1, OpenThinker
	`(?i:</?[|｜]/?(?:(?:begin|start|end)[_▁ ]?(?:of[_▁ ])?)?` + thought + `(?:[_▁ ]?(?:begin|start|end))?[|｜]>)`,
	`◁/?think▷`,                                               // Kimi-VL
	`<\|(?:open|close)\|>think<\|sep\|>`,                      // Kimi K3
	`<unused9[45]>|\[unused1[67]\]`,                           // MedGemma, Pangu
	`<\|channel>thought|<channel\|>`,                          // Gemma 4
	`<\|inner_(?:prefix|suffix)\|>`,                           // Apertus
	`\[BEGIN FINAL RESPONSE\]`,                                // Apriel
	`<\|channel\|>\s*\w+(?:<\|message\|>)?`,                   // harmony
	`<\|content_(?:thinking|text|invoke_tool_\w+)\|>`,         // Inkling
	`<\|im_start\|>(?:think|answer)`,                          // s1
	`to=self<\|message\|>|<\|eom\|>`,                          // Muse
	`<details[^<>\n]{0,80}reasoning[^<>\n]{0,80}>|</details>`, // Open WebUI
}, "|"))

var marksHere = lazy.Regexp(`^(?:` + marks().String() + `)`)

// maxMark bounds the length of a mark in bytes.
const maxMark = 200

// markAt returns the mark that begins at a position, and its length.
func markAt(s string, at int) (mark, int) {
	m := marksHere().FindString(s[at:min(len(s), at+maxMark)])
	return kindOf(m), len(m)
}

var closes = lazy.Regexp(
	`(?i)^[<\[◁][|｜]?/|[|｜]/|^<[|｜](?:end|close)|end[|｜]>|inner_suffix|BEGIN FINAL|unused95|unused17|^<channel\|>`)

// kindOf classifies a mark. Harmony's channels other than analysis end thoughts.
func kindOf(m string) mark {
	switch {
	case m == "":
		return markNone
	case strings.HasPrefix(m, "<|channel|>"):
		if strings.Contains(m, "analysis") {
			return markOpen
		}
		return markClose
	case m == "<|eom|>", strings.HasPrefix(m, "<|content_text"), strings.HasPrefix(m, "<|content_invoke"),
		m == "<|im_start|>answer", closes().MatchString(m):
		return markClose
	}
	return markOpen
}

// holdsMark reports whether a text contains a mark.
func holdsMark(s string) bool { return marks().MatchString(s) }

func countMarks(s string) int { return len(marks().FindAllStringIndex(s, -1)) }

// quotedMark reports whether a mark is only mentioned: in quotes, or in inline code.
func quotedMark(s string, at, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[end:])
	if before == after && strings.ContainsRune("`\"'", before) && !strings.HasSuffix(s[:at], "```") || before == '“' &&
		after == '”' {
		return true
	}
	rest, _, _ := strings.Cut(s[end:min(len(s), end+maxLine)], "\n")
	line := lineBefore(s, at)
	return strings.Count(line, "`")%2 == 1 && strings.Contains(rest, "`") &&
		!strings.HasPrefix(strings.TrimSpace(line), "```")
}

// maxLine is how many bytes of a line are examined on each side of a mark. A line may contain many marks.
const maxLine = 1000

// lineBefore returns the line before a position, or the end of a long line.
func lineBefore(s string, at int) string {
	line := s[max(0, at-maxLine):at]
	return line[strings.LastIndexByte(line, '\n')+1:]
}

// A heading describes thoughts without marks: how the text begins, and what ends the thoughts.
type heading struct{ begins, ends func() *regexp.Regexp }

var headings = []heading{
	// Harmony without its marks.
	{lazy.Regexp(`^\s*analysis\S`), lazy.Regexp(`assistant(?:final|commentary)`)},
	{lazy.Regexp(`(?i)^\W*here(?:'s| is) my thought process:`), lazy.Regexp(`(?i)here(?:'s| is) my response:`)},
	{lazy.Regexp(`^\s*Thinking\.\.\.`), lazy.Regexp(`\.\.\.done thinking\.`)},
}

// afterHeading returns where the answer begins in a text that begins with a heading, or 0.
func afterHeading(s string) int {
	for _, h := range headings {
		if !h.begins().MatchString(s[:min(len(s), 200)]) {
			continue
		}
		if all := h.ends().FindAllStringIndex(s, -1); len(all) > 0 {
			return all[len(all)-1][1]
		}
	}
	return 0
}

// thinking is the state of thoughts while a text is read.
type thinking struct {
	now       bool
	at        int  // offset of the mark with which they began
	lineStart bool // the mark begins its line, so it is not part of a sentence
	details   bool // an opening mark was <details>
}

// see handles a mark, and reports whether everything before it was thought.
func (t *thinking) see(s string, at int, kind mark, m string) bool {
	switch {
	case kind == markOpen:
		t.details = t.details || strings.HasPrefix(m, "<details")
		if !t.now {
			line := lineBefore(s, at)
			t.now, t.at, t.lineStart = true, at, strings.TrimSpace(line) == "" || strings.HasPrefix(m, "<|")
		}
		return false
	case m == "</details>" && !t.details, m == "<|eom|>" && !t.now:
		return false
	}
	t.now = false
	return true
}
