package fix

import (
	"go/scanner"
	"go/token"
	"strings"
)

// A lexeme is a token of a line, with its offsets in the text and the number of brackets around it.
type lexeme struct {
	tok      token.Token
	from, to int
	depth    int
}

// lexemes returns the tokens of the line of an offset, and the index of the token there, or -1. The line must close all
// the brackets that it opens, except for a last brace.
func (m *fixer) lexemes(at int) (list []lexeme, i int) {
	begin := strings.LastIndexByte(m.src[:at], '\n') + 1
	line, _, _ := strings.Cut(m.src[begin:], "\n")
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(line))
	var s scanner.Scanner
	s.Init(f, []byte(line), nil, 0)
	i, depth := -1, 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF || tok == token.SEMICOLON && lit == "\n" {
			return list, i
		}
		from := begin + f.Offset(pos)
		if from == at {
			i = len(list)
		}
		switch tok {
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		}
		if lit == "" {
			lit = tok.String()
		}
		list = append(list, lexeme{tok, from, from + len(lit), depth})
		switch tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		}
	}
}

// opens reports whether a token is a bracket that opens.
func opens(tok token.Token) bool {
	return tok == token.LPAREN || tok == token.LBRACK || tok == token.LBRACE
}

// endsOperand reports whether an expression ends before a token.
func endsOperand(tok token.Token) bool {
	switch tok {
	case token.COMMA, token.COLON, token.SEMICOLON, token.RPAREN, token.RBRACK, token.RBRACE, token.LBRACE:
		return true
	}
	return false
}

// closing returns the index of the bracket that closes the one at i, or -1.
func closing(list []lexeme, i int) int {
	for k := i + 1; k < len(list); k++ {
		if list[k].depth == list[i].depth {
			switch list[k].tok {
			case token.RPAREN, token.RBRACK, token.RBRACE:
				return k
			}
		}
	}
	return -1
}

// opening returns the index of the bracket that the one at i closes, or -1.
func opening(list []lexeme, i int) int {
	for k := i - 1; k >= 0; k-- {
		if list[k].depth == list[i].depth {
			switch list[k].tok {
			case token.LPAREN, token.LBRACK, token.LBRACE:
				return k
			}
		}
	}
	return -1
}

// primaryBefore returns the index of the first token of the operand that ends before i: a name or a literal, with
// what it is selected from, and calls and places.
func primaryBefore(list []lexeme, i int) int {
	first := -1
	for k := i - 1; k >= 0; {
		switch list[k].tok {
		case token.RPAREN, token.RBRACK:
			open := opening(list, k)
			if open < 0 {
				return -1
			}
			first, k = open, open-1
			if k >= 0 && (list[k].tok == token.IDENT || list[k].tok == token.RPAREN || list[k].tok == token.RBRACK) {
				continue
			}
			return first
		case token.IDENT, token.STRING, token.CHAR, token.INT, token.FLOAT:
			first = k
			if k < 2 || list[k-1].tok != token.PERIOD {
				return first
			}
			k -= 2
		default:
			return first
		}
	}
	return first
}

// primaryAfter returns the index behind the last token of the operand that begins at i.
func primaryAfter(list []lexeme, i int) int {
	if i >= len(list) {
		return i
	}
	switch list[i].tok {
	case token.STRING, token.CHAR, token.INT, token.FLOAT:
		return i + 1
	case token.LPAREN, token.LBRACK, token.LBRACE:
		return max(closing(list, i), i-1) + 1
	case token.IDENT:
	default:
		return i
	}
	for k := i + 1; ; {
		switch {
		case k+1 < len(list) && list[k].tok == token.PERIOD && list[k+1].tok == token.IDENT:
			k += 2
		case k < len(list) && (list[k].tok == token.LPAREN || list[k].tok == token.LBRACK) && closing(list, k) > 0:
			k = closing(list, k) + 1
		default:
			return k
		}
	}
}

// part returns the text of the tokens from i to before k.
func (m *fixer) part(list []lexeme, i, k int) string {
	if i < 0 || k <= i || k > len(list) {
		return ""
	}
	return m.src[list[i].from:list[k-1].to]
}
