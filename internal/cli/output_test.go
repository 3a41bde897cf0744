package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/cli/clitest"
)

func printed(t *testing.T, form, document string) string {
	t.Helper()
	var b bytes.Buffer
	o := &output{sh: Shell{Stdout: &b, Env: noEnvironment}, form: form}
	if err := o.document([]byte(document)); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return b.String()
}

// YAML keeps the names, the order and the digits of the JSON. Ambiguous text is quoted.
func TestYAMLIsTheSameDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ json, yaml string }{
		{`{"b":1,"a":[],"c":{}}`, "b: 1\na: []\nc: {}\n"},
		{`{"list":[1,"x",{"deep":[true,null]}]}`, "list:\n  - 1\n  - x\n  - deep:\n      - true\n      - null\n"},
		{`[9007199254740993,1.10,1e400,-0,123456789012345678901234567890]`,
			"- 9007199254740993\n- 1.10\n- 1e400\n- -0\n- 123456789012345678901234567890\n"},
		{`["null","true","5","1.0","no","~","2026-11-21","1:20","- x","a: b","","# x","'q'"]`,
			"- \"null\"\n- \"true\"\n- \"5\"\n- \"1.0\"\n- \"no\"\n- \"~\"\n- \"2026-11-21\"\n- \"1:20\"\n- '- x'\n- 'a: b'\n- \"\"\n- '# x'\n- '''q'''\n"},
		{`{"code":"package tool\n\n\tx\n"}`, "code: \"package tool\\n\\n\\tx\\n\"\n"},
		{`{"text":"two\nlines\n"}`, "text: |\n  two\n  lines\n"},
		{`["\u001b[31m","\u009b","\u202e","\ud83d\ude00"]`,
			"- \"\\e[31m\"\n- \"\\x9B\"\n- \"\\U0000202e\"\n- \"\\U0001F600\"\n"},
		{`5`, "5\n"}, {`"text"`, "text\n"}, {`null`, "null\n"},
	} {
		if got := printed(t, formYAML, c.json); got != c.yaml {
			t.Errorf("%s: got\n%s\nwant\n%s", c.json, got, c.yaml)
		}
	}
	if _, err := yamlOf([]byte(strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), nil); err == nil {
		t.Error("a document without bottom was taken")
	}
}

// Documents printed to a terminal contain nothing that could control it, and keep their content.
func FuzzDocuments(f *testing.F) {
	for _, s := range append([]string{"plain", "two\nlines\n", " lead", "trail ", "\U0001F600", "null", "1e5", "\u3000",
		"\ufffd", "?", "---", "a\n---\nb", "\t", "\r", "\u0085", "&x *x !x %x @x `x"}, clitest.HostileTexts...) {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		document, err := json.Marshal(map[string]any{name: []any{text, map[string]any{text: name}}})
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(document, &want); err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{formJSON, formYAML} {
			got := printed(t, form, string(document))
			if strings.ContainsFunc(got, func(r rune) bool {
				return r != '\n' &&
					(unicode.IsControl(r) || r > 0x7f && !unicode.IsPrint(r))
			}) || !utf8.ValidString(got) {
				t.Errorf("%s of %q is %q", form, document, got)
			}
			var is any
			unmarshal := json.Unmarshal
			if form == formYAML {
				unmarshal = yaml.Unmarshal
			}
			if err := unmarshal([]byte(got), &is); err != nil || !reflect.DeepEqual(is, want) {
				t.Errorf("%s of %q reads as %v (%v), want %v:\n%s", form, document, is, err, want, got)
			}
		}
	})
}

// Columns are aligned whatever script the cells use.
func TestTableColumnsAreAsWideAsTheyLook(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := &output{sh: Shell{Stdout: &b, Env: noEnvironment}, form: formTable}
	if err := o.table("ROLE STATE LAST", [][]string{{"漢字", "ok", "x"}, {"plain ascii", "error", ""},
		{"\x1b[31mred", "e\u0301", "y"}}); err != nil {
		t.Fatal(err)
	}
	want := "ROLE         STATE  LAST\n漢字         ok     x\nplain ascii  error  -\n[31mred      e\u0301      y\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
