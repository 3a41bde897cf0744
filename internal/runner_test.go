package internal_test

import (
	"slices"
	"strings"
	"testing"
)

// runnerParts are all packages of the runner's program beside the standard library's, by the directory that they are
// below. A package added here starts with every runner, and shares its process with programs of models.
var runnerParts = []string{
	module + "cmd/recurgent-runner",
	module + "internal/lazy",
	module + "internal/runtime/gate",
	module + "internal/runtime/plain",
	module + "internal/runtime/recurgent",
	module + "internal/runtime/sandbox/confine",
	module + "internal/runtime/sandbox/launch",
	module + "internal/runtime/sandbox/probe",
	module + "internal/runtime/sandbox/serve",
	module + "internal/runtime/sandbox/threads",
	module + "internal/runtime/sandbox/wire",
	module + "internal/runtime/sandbox/worker",
	"github.com/landlock-lsm/go-landlock/landlock/syscall",
	"github.com/traefik/yaegi",
	"golang.org/x/sys/unix",
	"golang.org/x/tools",
	"kernel.org/pub/linux/libs/security/libcap/psx",
}

// launcherParts are those of the launcher's program, which starts before each compiled program and reads nothing that
// is hostile.
var launcherParts = []string{
	module + "cmd/recurgent-launcher",
	module + "internal/runtime/gate/report",
	module + "internal/runtime/sandbox/confine",
	module + "internal/runtime/sandbox/launch",
	module + "internal/runtime/sandbox/wire",
	"github.com/landlock-lsm/go-landlock/landlock/syscall",
	"golang.org/x/sys/unix",
	"kernel.org/pub/linux/libs/security/libcap/psx",
}

// keptOut are packages of the standard library that no runner needs: connections, and what serves them.
var keptOut = []string{"net", "crypto/tls", "crypto/x509", "log/slog", "testing", "text/template", "html/template",
	"encoding/gob", "net/http"}

// The programs of runners and launchers have nothing of the daemon in them: no interface, no store, no contracts, no
// metrics, no network.
func TestRunnerHasNothingOfTheDaemon(t *testing.T) {
	t.Parallel()
	imports := importGraph(t)
	for from, all := range map[string][]string{"recurgent-runner": runnerParts, "recurgent-launcher": launcherParts} {
		wantParts(t, imports, module+"cmd/"+from, all)
	}
}

func wantParts(t *testing.T, imports map[string][]string, from string, all []string) {
	t.Helper()
	parts := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if at := queue[0]; !parts[at] {
			parts[at] = true
			queue = append(queue, imports[at]...)
		}
	}
	explain := func(name string) string {
		return strings.Join(wayTo(imports, from, func(to string) bool { return to == name }), " → ")
	}
	for name := range parts {
		// Packages that the standard library vendors have a dot in their names, too, yet further on.
		ours := strings.Contains(strings.SplitN(name, "/", 2)[0], ".")
		if ours && !withinAny(name, all) || slices.Contains(keptOut, name) {
			t.Errorf("%s has %s in it: %s", from, name, explain(name))
		}
	}
	for _, dir := range all {
		if !slices.ContainsFunc(sortedParts(parts), func(name string) bool { return within(name, dir) }) {
			t.Errorf("%s has nothing of %s; drop it from the list", from, dir)
		}
	}
}

// Whatever has package now in it gives up what a start needs: executables alone may.
func TestOnlyExecutablesNarrow(t *testing.T) {
	t.Parallel()
	const now, support = module + "internal/runtime/sandbox/narrow/now", module + "internal/runtime/native/support"
	imports := importGraph(t)
	for name := range imports {
		if way := wayTo(imports, name,
			func(to string) bool { return to == now }); way != nil && name != now && !within(name, support) {
			t.Errorf("a process would narrow itself: %s", strings.Join(way, " → "))
		}
	}
	if !slices.Contains(imports[support], now) {
		t.Errorf("%s does not import %s, so programs run before it", support, now)
	}
}

func sortedParts(parts map[string]bool) []string {
	var names []string
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
