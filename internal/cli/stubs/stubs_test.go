package stubs

import (
	"encoding/json"
	"errors"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// some returns methods of two roles, with each kind of parameter.
func some() []Method {
	return []Method{
		{Role: "text tools", Name: "to title case", Interface: &agent.Interface{Summary: "Title a text.",
			Parameters: []agent.Parameter{
				{Name: "text", Type: "string", Description: "what to change", Required: true},
				{Name: "size", Schema: json.RawMessage(`{"type":["integer","null"]}`)},
				{Name: "mode", Schema: json.RawMessage(`{"type":"string","enum":["a","b"]}`)},
				{Name: "class", Schema: json.RawMessage(`{"type":"array","items":{"type":"number"}}`), Variadic: true},
			}, Returns: json.RawMessage(`{"type":"string"}`)}},
		{Role: "text tools", Name: "look", Interface: nil},
		{Role: "calculator", Name: "add",
			Interface: &agent.Interface{Parameters: []agent.Parameter{{Name: "b", Type: "number"},
				{Name: "a", Type: "number", Required: true}}, Open: true,
				Returns: json.RawMessage(`{"type":"number"}`)}},
		{Role: "calculator", Name: "now", Interface: &agent.Interface{}},
		{Role: "file", Name: "convert", Interface: &agent.Interface{
			Parameters: []agent.Parameter{{Name: "sheet", Type: "file", Required: true},
				{Name: "unit", Type: "string", Schema: json.RawMessage(`{"enum":["km","mi"]}`), Required: true},
				{Name: "rows", Type: "array", Required: true}, {Name: "names", Type: "object", Required: true},
				{Name: "mode", Schema: json.RawMessage(`{"enum":["a",1,2.5,true,null]}`)},
				{Name: "any", Schema: json.RawMessage(`{"enum":["a",[1]]}`)}},
			Returns: json.RawMessage(`{"type":"object","properties":{"$file":{"type":"string"}},"required":["$file"]}`)}},
	}
}

func TestWrappers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"python": {
			"class Calculator:\n    \"calculator\"\n\n    def __init__(self, session: Session) -> None:\n        self._role = session.role(\"calculator\")\n",
			"    def add(self, a: float, b: float = _ABSENT, **more: Any) -> float:\n        \"calculator.add\"\n        _value: float = self._role[\"add\"](**_given(**{\"a\": a, \"b\": b, **more}))\n        return _value\n",
			"class File:\n", "    def convert(self, sheet: _File | dict[str, Any], unit: Literal[\"km\", \"mi\"], rows: list[Any], names: dict[str, Any], mode: Literal[\"a\"] | float | bool | None = _ABSENT, any: Any = _ABSENT) -> dict[str, Any]:",
			"    def now(self) -> Any:", "    def look(self, **more: Any) -> Any:",
			"    def to_title_case(self, text: str, size: int | None = _ABSENT, mode: Literal[\"a\", \"b\"] = _ABSENT, class_: list[float] = _ABSENT) -> str:\n        \"text tools.to title case | Title a text. | text: what to change\"\n",
		},
		"typescript": {
			`async convert(args: { "sheet": { "$file": string }; "unit": "km" | "mi"; "rows": Array<unknown>; "names": Record<string, unknown>; "mode"?: "a" | number | boolean | null; "any"?: unknown }): Promise<{ "$file": string }> {`,
			"export class TextTools {",
			`async to_title_case(args: { "text": string; "size"?: number | null; "mode"?: "a" | "b"; "class"?: Array<number> }): Promise<string> {`,
			`async now(): Promise<unknown> {`, `async look(args: { [name: string]: unknown } = {}): Promise<unknown> {`,
			`.call("add", [], args, { role: "calculator" })).value as number;`,
		},
		"go": {
			"func NewTextTools(session *recurgent.Session) TextTools",
			"func (r Calculator) Add(ctx context.Context, args CalculatorAddArgs) (value float64, err error) {",
			"\tif args.Rows == nil {\n\t\targs.Rows = []any{}\n\t}\n\tgiven[\"rows\"] = args.Rows\n\tif args.Names == nil {\n\t\targs.Names = map[string]any{}\n\t}\n",
			"\tgiven[\"sheet\"] = args.Sheet\n\tgiven[\"unit\"] = args.Unit\n", "\tMode any\n",
			"func (r Calculator) Now(ctx context.Context) (value json.RawMessage, err error) {",
			"\tif args.B != nil {\n\t\tgiven[\"b\"] = *args.B\n\t}\n\tgiven[\"a\"] = args.A\n\tfor name, v := range args.More {", "\tClass []float64",
		},
	} {
		got := string(Print(Languages()[name], some()))
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks\n%s\nin\n%s", name, w, got)
			}
		}
		if formatted, err := format.Source([]byte(got)); name == "go" && (err != nil || string(formatted) != got) {
			t.Errorf("%v, or gofmt writes it in another way:\n%s", err, formatted)
		}
		other := some()
		other[0], other[3] = other[3], other[0]
		if again := string(Print(Languages()[name], other)); again != got {
			t.Errorf("%s: other bytes for the same methods in another order:\n%s", name, again)
		}
	}
}

// bare returns the code without the contents of its strings and comments.
func bare(code string) string {
	var b strings.Builder
	for i := 0; i < len(code); i++ {
		rest := code[i:]
		end := 0 // of removed characters
		switch {
		case rest[0] == '"':
			for end = 1; rest[end] != '"'; end++ {
				if rest[end] == '\\' {
					end++
				}
			}
			end++
			b.WriteString(`""`)
		case rest[0] == '#' && !strings.HasPrefix(rest, "#session") || strings.HasPrefix(rest, "//"):
			end = strings.IndexByte(rest, '\n')
		case strings.HasPrefix(rest, "/*"):
			end = strings.Index(rest, "*/") + len("*/")
		}
		if end > 0 {
			i += end - 1
			continue
		}
		b.WriteByte(rest[0])
	}
	return b.String()
}

// Hostile names, descriptions and schemas give the same code as plain ones, outside of strings and comments.
func TestHostileInterfaces(t *testing.T) {
	t.Parallel()
	made := func(evil string) []Method {
		s, _ := json.Marshal(map[string]any{"type": "string", "enum": []string{"a" + evil, "b"}})
		return []Method{{Role: "role" + evil, Name: "method" + evil,
			Interface: &agent.Interface{Summary: "does" + evil, Parameters: []agent.Parameter{
				{Name: "in" + evil, Description: "what" + evil, Schema: s, Required: true},
				{Name: "self" + evil, Type: "x" + evil}}, Returns: s}}}
	}
	for _, evil := range []string{`"`, `"""`, `\`, `\"`, "\n", "\r", "\u2028", "\u2029", "\x00", "*/", "*/*/", "**//",
		"`", "${}", "'", "'''", "\u202e", "\U000e0001", "\U0001f600", "//", "/*", "#", "\n#", "\v\f", "\x85", "\ufeff",
		"%s", "{", "\xff", `\u0022`, `"+"`} {
		plain := strings.Map(func(r rune) rune { // with the same words for identifiers
			if strings.ContainsRune("su0123456789", r) {
				return r
			}
			return ' '
		}, evil)
		for name, l := range Languages() {
			got := string(Print(l, made(evil)))
			if want := string(Print(l, made(plain))); bare(got) != bare(want) {
				t.Errorf("%s of %q is\n%s\nwhich is not the code\n%s", name, evil, bare(got), bare(want))
			}
			for _, r := range got {
				if strings.ContainsRune("\u2028\u2029\u202e\U000e0001\x00\r\v\f\x85\ufeff", r) {
					t.Errorf("%s of %q holds %q", name, evil, r)
				}
			}
			if name == "go" {
				if formatted, err := format.Source([]byte(got)); err != nil || string(formatted) != got {
					t.Errorf("%q: %v, or gofmt writes it in another way:\n%s", evil, err, formatted)
				}
			}
		}
	}
}

// Names that map to one identifier get different ones, and reserved words are avoided.
func TestIdentifiers(t *testing.T) {
	t.Parallel()
	all := []Method{}
	for _, role := range []string{"a b", "a-b", "A B", "", "ä", "1", "None", "Caller", "list"} {
		for _, name := range []string{"x y", "x-y", "X Y", "数", "2", "class", "list", "constructor", "then", "__init__",
			"session"} {
			all = append(all, Method{Role: role, Name: name,
				Interface: &agent.Interface{Parameters: []agent.Parameter{{Name: "a b", Required: true}, {Name: "a-b"},
					{Name: "self"}, {Name: "more"}, {Name: "ctx"}, {Name: "def"}, {Name: "9"}}, Open: true}})
		}
	}
	for name, l := range Languages() {
		code := string(Print(l, all))
		seen := map[string]bool{}
		class := ""
		for at := range strings.Lines(code) {
			if id, ok := strings.CutPrefix(strings.TrimPrefix(at, "export "), "class "); ok {
				class, _, _ = strings.Cut(id, " ")
				if seen[class] {
					t.Errorf("%s: the class %s appears twice", name, class)
				}
				seen[class] = true
			}
			for _, keyword := range []string{"    def ", "  async ", "func "} {
				if id, ok := strings.CutPrefix(at, keyword); ok {
					id, _, _ = strings.Cut(id, "(ctx")
					if key := class + "." + id; !strings.HasPrefix(id, "__init__(self, session") && seen[key] {
						t.Errorf("%s: %s appears twice", name, key)
					} else {
						seen[key] = true
					}
				}
			}
		}
		if name == "go" {
			if _, err := parser.ParseFile(token.NewFileSet(), "", code, parser.AllErrors); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWriteReplacesItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "tools")
	for name, l := range Languages() {
		path, err := Write(dir, l, some())
		if err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(path)
		if err != nil || len(first) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := Write(dir, l, some()[:1]); err != nil {
			t.Errorf("%s again: %v", name, err)
		}
		if err := os.WriteFile(path, []byte("# mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(dir, l, some()); !errors.Is(err, ErrTaken) {
			t.Errorf("%s over a file of somebody's: %v", name, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != len(Languages()) {
		t.Errorf("%v", entries)
	}
}
