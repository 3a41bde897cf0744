package runtime

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/prompt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of the selection of known tools: its cost does not grow with the registry.
const (
	maxConsidered     = 1000 // best-ranked tools that are looked at
	maxUnrelated      = 3    // shown where fewer than that are related to the task
	maxShownMethods   = 8    // of a tool
	maxMethodLookups  = 24   // of all tools, for signatures
	maxSignatureShown = 160  // characters of a signature and its summary
)

// knownTools are the tools that can matter for the task, best-ranked first: the call's own role, those that share a word
// with the task, and up to three of the best others, those that say what they are for before those that do not.
func (c *selected) knownTools(ctx context.Context) []prompt.Tool {
	limit := c.policy.KnownToolsPromptLimit
	if limit == 0 {
		return nil
	}
	ranked, err := c.r.store.RankTools(ctx, c.r.o.Now(), maxConsidered)
	if err != nil {
		return nil
	}
	task := c.taskWords()
	var out []prompt.Tool
	lookups := maxMethodLookups
	for _, t := range relatedTools(ranked, c.role, task, limit) {
		known := prompt.Tool{Role: t.Tool.Role, Purpose: t.Tool.Purpose, Deliverable: t.Tool.Deliverable}
		for _, m := range byRelation(t.Methods, task) {
			if lookups--; lookups >= 0 && len(known.Methods) < maxShownMethods {
				m = c.signatureOf(ctx, t.Tool.Role, m)
			}
			known.Methods = append(known.Methods, m)
		}
		out = append(out, known)
	}
	return out
}

// signatureOf is the method's signature with its summary; its name where nothing is known of it.
func (c *selected) signatureOf(ctx context.Context, role, method string) string {
	a, err := c.r.store.Artifact(ctx, role, method)
	if err != nil || a.Takes() == nil {
		return method
	}
	f := a.Takes()
	text := f.Signature(method)
	if f.Summary != "" {
		text += ", " + f.Summary
	}
	return Clip(text, maxSignatureShown)
}

// knownSignature is the method's signature, "" where it is not known.
func (c *selected) knownSignature(ctx context.Context, role, method string) string {
	if a, err := c.r.store.Artifact(ctx, role, method); err == nil && a.Takes() != nil {
		return Clip(a.Takes().Signature(method), maxSignatureShown)
	}
	return ""
}

// taskWords are the words of what the call asks for.
func (c *selected) taskWords() map[string]bool {
	task := map[string]bool{}
	addWords(task, c.role)
	addWords(task, c.method)
	if k := c.terms.contract; k != nil {
		addWords(task, Clip(k.Purpose, 2000))
	}
	for _, name := range agent.Keywords(c.kwargs) {
		addWords(task, name)
	}
	return task
}

// relatedTools selects at most limit of the ranked tools, in their order.
func relatedTools(ranked []store.RankedTool, own string, task map[string]bool, limit int) []store.RankedTool {
	var related, others, silent []store.RankedTool
	for _, t := range ranked {
		if t.Tool.Role == own || relates(task, t.Tool.Role, t.Tool.Purpose) || slices.ContainsFunc(t.Methods[:min(len(t.Methods), maxConsidered)], func(m string) bool { return relates(task, m) }) {
			if related = append(related, t); len(related) == limit {
				return related
			}
			continue
		}
		switch {
		case t.Tool.Purpose == "":
			silent = append(silent, t)
		case len(others) < maxUnrelated:
			others = append(others, t)
		}
	}
	others = append(others, silent...) // which say the least
	add := min(max(0, maxUnrelated-len(related)), len(others), limit-len(related))
	chosen := append(related, others[:add]...)
	return slices.DeleteFunc(slices.Clone(ranked), func(t store.RankedTool) bool {
		return !slices.ContainsFunc(chosen, func(x store.RankedTool) bool { return x.Tool.Role == t.Tool.Role })
	})
}

// byRelation puts the methods that share a word with the task first.
func byRelation(methods []string, task map[string]bool) []string {
	var related, others []string
	for _, m := range methods {
		if relates(task, m) {
			related = append(related, m)
		} else {
			others = append(others, m)
		}
	}
	return append(related, others...)
}

// relates reports whether a text has a word of the task.
func relates(task map[string]bool, texts ...string) bool {
	words := map[string]bool{}
	for _, t := range texts {
		addWords(words, Clip(t, 400))
	}
	for w := range words {
		if task[w] {
			return true
		}
	}
	return false
}

// common words say nothing of a task.
var commonWords = strings.Fields("the and for with from that this are its into all one two new get set has have not but any out per was will can each which their them then than when where who what how why use used uses using return returns given value values list object text number name first second argument arguments method methods call calls")

// addWords adds the words of a text: runs of letters and digits, split where lower case meets upper case, in lower case,
// without a plural s.
func addWords(to map[string]bool, text string) {
	var b strings.Builder
	var last rune
	for _, r := range text {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	for _, w := range strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) < 3 || slices.Contains(commonWords, w) {
			continue
		}
		if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = strings.TrimSuffix(w, "s")
		}
		to[w] = true
	}
}
