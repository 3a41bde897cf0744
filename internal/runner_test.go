package internal_test

import (
	"slices"
	"strings"
	"testing"
)

// runnerParts are all packages of the runner's program beside the standard library's, by the directory that they are below. What is added
// here starts with every runner, and stands beside every program that a model wrote.
var runnerParts = []string{
	module + "cmd/recurgent-runner",
	module + "internal/runtime/gate",
	module + "internal/runtime/plain",
	module + "internal/runtime/recurgent",
	module + "internal/runtime/sandbox/landlock",
	module + "internal/runtime/sandbox/probe",
	module + "internal/runtime/sandbox/serve",
	module + "internal/runtime/sandbox/threads",
	module + "internal/runtime/sandbox/wire",
	module + "internal/runtime/sandbox/worker",
	"github.com/landlock-lsm/go-landlock/landlock/syscall",
	"github.com/tidwall/btree",
	"github.com/traefik/yaegi",
	"golang.org/x/sys/unix",
	"golang.org/x/tools",
	"kernel.org/pub/linux/libs/security/libcap/psx",
}

// keptOut are packages of the standard library that no runner needs: connections, and what serves them.
var keptOut = []string{"net", "crypto/tls", "crypto/x509", "log/slog", "testing", "text/template", "html/template", "encoding/gob", "net/http"}

// The runner's program has nothing of the daemon in it: no interface, no store, no contracts, no metrics, no network.
func TestRunnerHasNothingOfTheDaemon(t *testing.T) {
	t.Parallel()
	imports := importGraph(t)
	from := module + "cmd/recurgent-runner"
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
		if ours && !withinAny(name, runnerParts) || slices.Contains(keptOut, name) {
			t.Errorf("the runner has %s in it: %s", name, explain(name))
		}
	}
	for _, dir := range runnerParts {
		if !slices.ContainsFunc(sortedParts(parts), func(name string) bool { return within(name, dir) }) {
			t.Errorf("the runner has nothing of %s; drop it from the list", dir)
		}
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
