package check

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// A binary is what the daemon of this checkout takes.
type binary struct {
	path     string
	settings map[string]bool // names of flags and keys of the configuration file
	env      map[string]bool
}

// theBinary is built once for all tests.
func theBinary(t *testing.T) binary {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var built = sync.OnceValues(func() (binary, error) {
	b := binary{path: filepath.Join(builtDir, "recurgentd"), settings: map[string]bool{},
		env: map[string]bool{"RECURGENT_CONFIG": true, "OPENAI_API_KEY": true}}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", b.path, "./cmd/recurgentd")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return b, fmt.Errorf("%w\n%s", err, out)
	}
	help, err := exec.Command(b.path, "serve", "--help").Output()
	if err != nil {
		return b, err
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+--([a-z0-9-]+) .*\[([A-Z_]+)\]`).FindAllStringSubmatch(string(help),
		-1) {
		b.settings[m[1]], b.env[m[2]] = true, true
	}
	if len(b.settings) < 15 {
		return b, fmt.Errorf("serve --help lists %d settings:\n%s", len(b.settings), help)
	}
	return b, nil
})

var builtDir string // of built

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "check")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builtDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// wantCommand checks that the binary has the command.
func (b binary) wantCommand(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), b.path, append(args, "--help")...).CombinedOutput(); err != nil {
		t.Errorf("recurgentd %q: %v\n%s", args, err, out)
	}
}

// wantConfig has the binary read a configuration file whose paths are not of this machine.
func (b binary) wantConfig(t *testing.T, text string) map[string]any {
	t.Helper()
	var settings map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &settings); err != nil {
		t.Fatal(err)
	}
	for name := range settings {
		if !b.settings[name] {
			t.Errorf("the configuration file has %s, which is no setting", name)
		}
	}
	return settings
}

// openRoutes are those of the REST interface that need no token.
func openRoutes(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for path, methods := range doc.Paths {
		var operation struct{ Security *[]any }
		if get, has := methods["get"]; has && json.Unmarshal(get, &operation) == nil {
			open[path] = operation.Security != nil && len(*operation.Security) == 0
		}
	}
	return open
}

// dockerfile returns the values of an instruction, such as USER.
func dockerfile(t *testing.T, instruction string) []string {
	t.Helper()
	data, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "FROM ") {
			values = nil // of the last stage, which is the plain image
		}
		if v, ok := strings.CutPrefix(line, instruction+" "); ok {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}
