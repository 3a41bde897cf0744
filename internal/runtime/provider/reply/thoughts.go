package reply

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// A mark is what models write around their thoughts.
type mark int

const (
	markNone  mark = iota
	markOpen       // thoughts begin
	markClose      // all before it was thought
)

const thought = `(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|cot|analysis)`

// marks are those of models and servers that are known, and of their kind. A server may leave the first one in its prompt.
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

// maxMark bounds a mark in bytes.
const maxMark = 200

// markAt returns the mark that begins at a place, and its length.
func markAt(s string, at int) (mark, int) {
	m := marksHere().FindString(s[at:min(len(s), at+maxMark)])
	return kindOf(m), len(m)
}

var closes = lazy.Regexp(
	`(?i)^[<\[◁][|｜]?/|[|｜]/|^<[|｜](?:end|close)|end[|｜]>|inner_suffix|BEGIN FINAL|unused95|unused17|^<channel\|>`)

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

// holdsMark reports whether a text has a mark in it.
func holdsMark(s string) bool { return marks().MatchString(s) }

func countMarks(s string) int { return len(marks().FindAllStringIndex(s, -1)) }

// quotedMark reports whether somebody speaks of a mark, in quotes or in the code of a line.
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

// maxLine is how much of a line is looked at, on each side of a mark, in bytes: a line may hold many marks.
const maxLine = 1000

// lineBefore returns the line before a place, or its end where it is long.
func lineBefore(s string, at int) string {
	line := s[max(0, at-maxLine):at]
	return line[strings.LastIndexByte(line, '\n')+1:]
}

// A heading is how a text begins that is thought without marks, and what ends that.
type heading struct{ begins, ends func() *regexp.Regexp }

var headings = []heading{
	{lazy.Regexp(`^\s*analysis\S`), lazy.Regexp(`assistant(?:final|commentary)`)}, // harmony without its marks
	{lazy.Regexp(`(?i)^\W*here(?:'s| is) my thought process:`), lazy.Regexp(`(?i)here(?:'s| is) my response:`)},
	{lazy.Regexp(`^\s*Thinking\.\.\.`), lazy.Regexp(`\.\.\.done thinking\.`)},
}

// afterHeading returns where the answer begins in a text whose thoughts have headings.
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

// Thoughts that go on to the end of the text, where they began.
type thinking struct {
	now       bool
	at        int
	lineStart bool // what thoughts begin with stands on a line of its own, so that no sentence speaks of it
	details   bool // some of them began with <details>
}

// see takes notice of a mark, and reports whether all before it was thought.
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
