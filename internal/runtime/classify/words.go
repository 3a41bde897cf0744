package classify

import (
	"strings"
	"sync"
	"text/scanner"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Words caches the words of programs by checksum. The zero value is ready.
type Words struct {
	mu  sync.RWMutex
	all map[string]map[string]bool // guarded by mu
}

// Of returns the words of the generation's program. They are shared and must not be modified.
func (c *Words) Of(g *agent.Generation) map[string]bool {
	const most = 1024
	c.mu.RLock()
	words, known := c.all[g.CodeChecksum]
	c.mu.RUnlock()
	if known {
		return words
	}
	words = wordsOf(g.Code)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= most {
		c.all = map[string]map[string]bool{}
	}
	c.all[g.CodeChecksum] = words
	return words
}

// wordsOf returns the words in the string literals of a program, which are the names that it may look for in markup.
// URLs and error messages are left out. The program is only scanned, so any text works.
func wordsOf(code string) map[string]bool {
	words := map[string]bool{}
	var s scanner.Scanner
	// the default writes errors to standard error
	s.Init(strings.NewReader(code)).Error = func(*scanner.Scanner, string) {}
	// last is the previous identifier; message is the depth of parentheses inside a message's arguments
	last, message := "", 0
	for tok := s.Scan(); tok != scanner.EOF; tok = s.Scan() {
		switch {
		case tok == '(' && (message > 0 || saysMessage(last)):
			message++
		case tok == ')' && message > 0:
			message--
		case message == 0 && (tok == scanner.String || tok == scanner.RawString):
			wordsIn(words, s.TokenText())
		}
		if last = ""; tok == scanner.Ident {
			last = s.TokenText()
		}
	}
	return words
}

// saysMessage reports whether a function of that name takes a message for people.
func saysMessage(name string) bool {
	return name == "Fail" || name == "FailRetriable" || name == "Errorf" || name == "New" || name == "panic"
}

// wordsIn adds the words of a string literal, as written and in lower case, unless the literal is a URL.
func wordsIn(words map[string]bool, literal string) {
	if text := strings.Trim(literal, "\"`"); strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return
	}
	for w := range strings.FieldsFuncSeq(literal, func(r rune) bool {
		return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			r > 127)
	}) {
		words[w], words[strings.ToLower(w)] = true, true // shapes hold the names of elements in lower case
	}
}
