package oidc

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a\n b\xff": "a b?", "a" + strings.Repeat("é", 200): "a" + strings.Repeat("é", 149) + "?",
	} {
		if got := brief(errors.New(given)); got != want || !utf8.ValidString(got) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
