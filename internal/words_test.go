package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// privateWords are words that earlier texts used in a sense of their own, with what to write instead. None of them has
// another use here that the standard word does not serve as well.
var privateWords = map[string]string{
	`mend(s|ed|ing)?`:                      "repair, or correct",
	`tells?|told`:                          "report, log, return or say",
	`(set|sets|setting) aside`:             "move aside",
	`chances?`:                             "randomness",
	`the outside`:                          "external source, or network",
	`(its|their|on the) way`:               "progress, or stages",
	`trials?`:                              "proposed contract",
	`the books`:                            "the registry, or the pool",
	`(an|the|each|every|no|one|later) act`: "operation",
}

// storedName is a name on the wire or in a file, which stays as it is.
var storedName = regexp.MustCompile(`json:"[a-z_]+`)

// Texts and identifiers use the words that the field uses.
func TestNoPrivateWords(t *testing.T) {
	t.Parallel()
	var either []string
	for word := range privateWords {
		either = append(either, word)
	}
	private := regexp.MustCompile(`(?i)\b(` + strings.Join(either, "|") + `)\b`)
	for _, file := range texts(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			n++
			for _, word := range private.FindAllString(storedName.ReplaceAllString(line, ""), -1) {
				t.Errorf("%s:%d: instead of %q write %s", file, n, word, instead(word))
			}
		}
	}
}

func instead(word string) string {
	for pattern, plain := range privateWords {
		if regexp.MustCompile(`(?i)^(` + pattern + `)$`).MatchString(word) {
			return plain
		}
	}
	return "a standard word"
}

// texts lists what people read: sources and documents, except for this file. Prompts are for models, and change
// with what models do.
func texts(t *testing.T) []string {
	t.Helper()
	var out []string
	visit := func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && strings.HasSuffix(file, "recurgent/html/internal"): // the texts of others
			return filepath.SkipDir
		case d.IsDir() && (name == "testdata" || name == "dist" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case d.IsDir() || name == "words_test.go":
			return nil
		case name == "Makefile" || strings.Contains(" .go .md .yaml .yml .json .service ",
			" "+filepath.Ext(name)+" ") && filepath.Ext(name) != "":
			out = append(out, file)
		}
		return nil
	}
	// Not the root itself: go test would run this again whenever something is committed or built.
	for _, top := range []string{"Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "api",
		"bench", "clients", "cmd", "deploy", "docs", "examples", "internal", "scripts", "test"} {
		if err := filepath.WalkDir(filepath.Join("..", top), visit); err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 100 {
		t.Fatalf("%d files", len(out))
	}
	return out
}
