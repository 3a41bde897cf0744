package prompt

import (
	"unicode"

	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// shortTokens bounds the request for a model with a small context, in tokens.
const shortTokens = 1800

// smallContext is the largest context, in tokens, for which requests are short. An ordinary request with its reply
// takes more than half of it.
const smallContext = 8192

// bounds are the sizes, in bytes, of the quoted parts of a request. Each bound applies to each part separately.
type bounds struct{ data, code, contract int }

// ordinary are the bounds of a request to a model whose context is large or unknown.
var ordinary = bounds{data: maxArgs, code: maxFailedCode, contract: maxContract}

// leastQuoted is the smallest value of a bound: less would be useless.
const leastQuoted = 64

// leaveOut lists the reductions of a short request, least important parts first.
var leaveOut = []func(*Input){
	func(in *Input) { in.Patterns = nil },
	func(in *Input) { in.HistoryTurns = in.HistoryTurns[max(0, len(in.HistoryTurns)-2):] },
	func(in *Input) { in.HistoryLatest = nil },
	func(in *Input) { in.Turns = in.Turns[max(0, len(in.Turns)-2):] },
	func(in *Input) { in.Files = in.Files[:min(1, len(in.Files))] },
	func(in *Input) { in.KnownTools = in.KnownTools[:min(3, len(in.KnownTools))] },
	func(in *Input) { in.Earlier = "" },
	func(in *Input) { in.ContextKeys = nil },
	func(in *Input) { in.Examples = in.Examples[:min(1, len(in.Examples))] },
	func(in *Input) { in.Feedback = in.Feedback[max(0, len(in.Feedback)-1):] },
	func(in *Input) { in.KnownTools, in.Connections, in.HistoryTurns, in.Turns = nil, nil, nil, nil },
}

// short renders a request of at most shortTokens, or half of the context if that is less. It drops and shortens the
// least important parts first, and the contract last. The names of the role and the method are never cut.
func short(in *Input) []provider.Message {
	most := min(shortTokens, in.ModelContext/2)
	b := ordinary
	out := messages(*in, shortText, b)
	fits := func() bool { return tokens(out) <= most }
	for _, leave := range leaveOut {
		if fits() {
			return out
		}
		leave(in)
		out = messages(*in, shortText, b)
	}
	for _, bound := range []*int{&b.data, &b.code, &b.contract} {
		for !fits() && *bound > leastQuoted {
			*bound /= 2
			out = messages(*in, shortText, b)
		}
	}
	return out
}

// tokens estimates the tokens of the messages. It rather overestimates, because tokenizers differ and some count each
// digit.
func tokens(messages []provider.Message) int {
	n := 0
	for _, m := range messages {
		n += tokensOf(m.Content)
	}
	return n
}

// tokensOf counts a token for each run of up to 7 ASCII letters, for each digit, line break and non-ASCII character,
// and for each one or two adjacent punctuation characters.
func tokensOf(text string) int {
	n, letters := 0, 0
	marks := false // the last character was punctuation that counted
	for _, r := range text {
		letter := r < unicode.MaxASCII && unicode.IsLetter(r)
		switch {
		case letter && letters%7 == 0, r > unicode.MaxASCII, unicode.IsDigit(r), r == '\n':
			n++
		case !letter && r != ' ' && r != '\t':
			if !marks {
				n++
			}
			marks = !marks
			letters = 0
			continue
		}
		marks = false
		if letters++; !letter {
			letters = 0
		}
	}
	return n
}
