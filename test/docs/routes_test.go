package docs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/hostile"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Addresses with their parameters, switches of the policy and metrics that the documents name are there.
func TestDocumentsAskForWhatExists(t *testing.T) {
	t.Parallel()
	doc, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(observabilityPath)
	if err != nil {
		t.Fatal(err)
	}
	var policy map[string]any
	if err := json.Unmarshal(rig.MustJSON(agent.DefaultPolicy()), &policy); err != nil {
		t.Fatal(err)
	}
	for _, path := range documents(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:http://127\.0\.0\.1:8420|\$U)(/[^\s"'?|)`+"`"+`]*)(\?[^\s"'|)`+"`"+
			`]+)?`).FindAllStringSubmatch(string(data), -1) {
			item := described(doc, m[1])
			if item == nil {
				t.Errorf("%s: no route is like %s", path, m[1])
				continue
			}
			for _, pair := range strings.Split(strings.TrimPrefix(m[2], "?"), "&") {
				name, _, _ := strings.Cut(pair, "=")
				if name != "" && !takesParameter(item, name) {
					t.Errorf("%s: %s takes no %s", path, m[1], name)
				}
			}
		}
		for _, m := range regexp.MustCompile(`policy set ([a-z_]+)(?:\.([a-z_]+))?=`).FindAllStringSubmatch(string(
			data), -1) {
			part, isPart := policy[m[1]].(map[string]any)
			_, whole := policy[m[1]]
			if _, known := part[m[2]]; !whole || m[2] != "" && (!isPart || !known) {
				t.Errorf("%s: the policy has no %s %s", path, m[1], m[2])
			}
		}
		for _, at := range regexp.MustCompile(`\brecurgent_[a-z_]+[a-z]`).FindAllStringIndex(string(data), -1) {
			name := string(data[at[0]:at[1]])
			if data[at[0]-1] == ':' { // job:recurgent_...: a recording rule; deploy's tests know them
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !strings.Contains(string(reference), "`"+name+"`") {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	}
}

// described returns the path item whose pattern the path fits, or nil. A fixed part wins over a parameter.
func described(doc *openapi3.T, path string) *openapi3.PathItem {
	if item := doc.Paths.Value(path); item != nil {
		return item
	}
	for pattern, item := range doc.Paths.Map() {
		form := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(pattern), `[^/]+`)
		if regexp.MustCompile(`^` + form + `$`).MatchString(path) {
			return item
		}
	}
	return nil
}

func takesParameter(item *openapi3.PathItem, name string) bool {
	for _, op := range item.Operations() {
		if op.Parameters.GetByInAndName("query", name) != nil {
			return true
		}
	}
	return item.Parameters.GetByInAndName("query", name) != nil
}

// The figures of docs/security.md are those of the code.
func TestSecurityFigures(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := hostile.Programs()
	if err != nil {
		t.Fatal(err)
	}
	box := sandbox.DefaultOptions()
	for _, want := range []string{fmt.Sprintf("(%d programs over HTTP", len(programs)),
		fmt.Sprintf("data %d MiB", box.Memory>>20)} {
		if !strings.Contains(string(data), want) {
			t.Errorf("docs/security.md does not say %q", want)
		}
	}
}

// Every route of the OpenAPI document has an example in the guide.
func TestGuideHasEveryRoute(t *testing.T) {
	t.Parallel()
	doc, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{} // paths by method
	for _, kind := range daemonKinds() {
		for _, s := range steps(fences(t, "../../docs/http-guide.md"), kind) {
			for _, request := range strings.Split(s.Command, "curl ")[1:] {
				path := regexp.MustCompile(`\$U(/[^\s"'?|)]*)`).FindStringSubmatch(request)
				if path == nil {
					continue
				}
				method := http.MethodGet
				if strings.Contains(request, "--json") || strings.Contains(request, " -d ") {
					method = http.MethodPost
				}
				if named := regexp.MustCompile(`-X ([A-Z]+)`).FindStringSubmatch(request); named != nil {
					method = named[1]
				}
				shown[method] = append(shown[method], path[1])
			}
		}
	}
	for pattern, item := range doc.Paths.Map() {
		form := regexp.MustCompile(`^` +
			regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(pattern), `[^/]+`) + `$`)
		for method := range item.Operations() {
			if !slices.ContainsFunc(shown[method], form.MatchString) {
				t.Errorf("docs/http-guide.md has no example of %s %s", method, pattern)
			}
		}
	}
}
