package native_test

import (
	"strings"
	"testing"
)

// hostileTexts are texts that ask a compiler for more than compilation. Package rewrite cannot write any of them,
// because it prints a checked syntax tree without comments.
var hostileTexts = map[string]string{
	"embed":    "package tool\n\nimport _ \"embed\"\n\n//go:embed program.go\nvar s string\n",
	"cgo":      "package tool\n\n// #include \"/etc/passwd\"\nimport \"C\"\n",
	"linkname": "package tool\n\nimport _ \"unsafe\"\n\n//go:linkname exit os.runtime_beforeExit\nfunc exit()\n",
	"body":     "package tool\n\nfunc body()\n",
	"os/exec":  "package tool\n\nimport _ \"os/exec\"\n",
	"net":      "package tool\n\nimport _ \"net\"\n",
	"by path":  "package tool\n\nimport _ \"/etc/passwd\"\n",
	"relative": "package tool\n\nimport _ \"../../../etc\"\n",
	"line":     "package tool\n\n//line /etc/passwd:1\nfunc f() { return 1 }\n",
	"const":    "package tool\n\nconst a = 1 << 1000000\nconst b = a * a\n",
}

// Hostile texts do not compile, and the compiler's output contains nothing but parts of them.
func TestHostileTexts(t *testing.T) {
	b, _ := builder(t)
	for name, text := range hostileTexts {
		_, err := b.BuildMany(t.Context(), "hostile", []string{text})
		if err == nil || strings.Contains(err.Error(), "root:") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
