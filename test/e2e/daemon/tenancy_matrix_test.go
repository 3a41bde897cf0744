package daemon

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	document "github.com/recurgentd/recurgentd/api"
	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// An asked operation is one of the document, as the matrix asks for it.
type matrixRequest struct {
	id, method, path string
	matrixRow
	anyone bool
	scope  access.Scope // 0: any token will do
	full   int          // status where its principal may and what it names is there
}

// operations are those of the document, each with its scope as the document says it and its row of the plan.
func operations(t *testing.T) []matrixRequest {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	rows, all := plan(), []matrixRequest{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			o := matrixRequest{id: op.OperationID, method: method, path: path, matrixRow: rows[op.OperationID]}
			delete(rows, op.OperationID)
			o.anyone = len(*op.Security) == 0
			if !o.anyone {
				needs := strings.Join((*op.Security)[1]["bearer"], " ")
				if o.id == "mcp" {
					needs = "read" // for the message of the plan
				}
				scope, ok := access.ParseScope(needs)
				if !ok && needs != "" { // any token will do
					t.Fatalf("%s: the document names the scope %q", o.id, needs)
				}
				o.scope = scope
			}
			if o.full = o.status; o.full == 0 {
				o.full = firstSuccess(op)
			}
			if o.elsewhere == 0 {
				if o.elsewhere = o.full; pathNames.MatchString(path+o.query+o.body) &&
					!strings.Contains(path, "/namespaces/") && !o.anyone {
					o.elsewhere = http.StatusNotFound
				}
			}
			all = append(all, o)
		}
	}
	for id := range rows {
		t.Errorf("the plan has %s, which the document does not", id)
	}
	slices.SortFunc(all, func(x, y matrixRequest) int { return strings.Compare(x.id, y.id) })
	return all
}

// firstSuccess is the least 2xx or 3xx that the document has for the operation.
func firstSuccess(op *openapi3.Operation) int {
	for _, code := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		if strings.HasPrefix(code, "2") || strings.HasPrefix(code, "3") {
			var n int
			fmt.Sscan(code, &n)
			return n
		}
	}
	return 0
}

// private reports whether the operation is about a session, a call or a file, which are their owner's.
func (o *matrixRequest) private() bool {
	for _, p := range []string{"/v1/sessions/{id}", "/v1/calls/{call_id}", "/v1/files/{id}"} {
		if strings.HasPrefix(o.path, p) {
			return true
		}
	}
	return strings.Contains(o.body, "{session}")
}

// names matches what is filled in.
var pathNames = regexp.MustCompile(`\{[a-z_]+\}`)

// A view is from where a principal of a looks, and at what.
type view struct {
	name   string
	at     *side // whose things are named
	header string
}

// want is the status that a principal gets, and the scope that it lacks.
func (o *matrixRequest) want(v *view, scopes access.Scopes, token bool) (status int, missing access.Scope) {
	stays := v.header != "" && !scopes.Has(access.Admin)
	switch {
	case o.anyone:
		return o.full, 0
	case !token:
		return http.StatusUnauthorized, 0
	// a message is read in the namespace where it acts
	case o.scope != 0 && !scopes.Has(o.scope) && (o.id != "mcp" || !stays):
		return http.StatusForbidden, o.scope
	case stays:
		return http.StatusForbidden, access.Admin
	case v.name == "ids":
		return o.elsewhere, 0
	case v.name != "own" && o.private() && !scopes.Has(access.Operate):
		return http.StatusNotFound, 0
	}
	return o.full, 0
}

// TestMatrix asks for every operation of the document with every set of scopes and without a token: for one's own
// things, for those of another person in the same namespace, for those of another namespace by their ids and names, and
// in another namespace by the header. Each case has one status. A refusal says what lacks, shows nothing of others,
// reads as one of what nobody has, and leaves every byte of the store as it was; what is done in one namespace leaves
// every byte of the other. TestOthersMoveNothing looks for what has no text of its own: counts.
func TestMatrix(t *testing.T) {
	w := newWorld(t)
	views := []view{{"own", w.own, ""}, {"another's", w.other, ""}, {"ids", w.away, ""}, {"header", w.away, "b"}}
	cases := 0
	all := operations(t)
	if testing.Short() { // one operation in six
		short := all[:0:0]
		for i := 0; i < len(all); i += 6 {
			short = append(short, all[i])
		}
		all = short
	}
	const checkpoint = "/journal/checkpoint.json"
	for i := range all { // refusals first: nothing else writes meanwhile
		refused := 0
		for try := range 2 { // but for the checkpoint of each minute, which is not there in both
			before := rig.Files(t, w.dir)
			refused = 0
			for j := range views {
				refused += w.each(t, &all[i], &views[j], func(status int) bool { return status >= 400 })
			}
			after := rig.Files(t, w.dir)
			if try == 0 && !bytes.Equal(before[w.dir+checkpoint], after[w.dir+checkpoint]) {
				continue
			}
			same(t, all[i].id+", refused", before, after)
			break
		}
		cases += refused
	}
	for i := range all {
		for j := range views {
			before := w.away.state()
			cases += w.each(t, &all[i], &views[j], func(status int) bool { return status < 400 })
			if views[j].header == "" {
				same(t, all[i].id+", "+views[j].name, before, w.away.state())
			}
		}
	}
	if want := len(all) * len(views) * (1 + 1<<4); cases != want || cases < 4000 && !testing.Short() {
		t.Errorf("%d cases, want %d", cases, want)
	}
	t.Logf("%d cases of %d operations", cases, len(all))
}

// each asks for the operation as everybody whose status is one of those.
func (w *world) each(t *testing.T, o *matrixRequest, v *view, is func(status int) bool) (cases int) {
	for n := -1; n <= int(access.All); n++ { // -1: no token
		scopes := access.Scopes(max(n, 0))
		status, missing := o.want(v, scopes, n >= 0)
		if !is(status) {
			continue
		}
		cases++
		name := fmt.Sprintf("%s, %s, with scopes %v of %d", o.id, v.name, scopes, n)
		if status < 300 && o.fresh != nil {
			o.fresh(v.at)
		}
		token := ""
		if n >= 0 {
			token = tokenOf("ann", "a", scopes)
		}
		got := w.send(t, o.method, v.at.fill(o.path+o.query), v.at.fill(o.body), token,
			map[string]string{"Recurgent-Namespace": v.header, "Content-Type": o.media, "Accept": o.accept})
		if got.status != status {
			t.Errorf("%s: %s %s: %d %.300s, want %d", name, o.method, v.at.fill(o.path), got.status, got.body, status)
		}
		if got.status >= 400 {
			checkRefusal(t, name, got, missing)
		}
		w.checkHidden(t, name, o, v, scopes, got)
		if got.status == status && (status >= 400 || v.name == "ids" && o.method == http.MethodGet) {
			w.checkTwin(t, name, o, v, token, got)
		}
		// there other names are in use, which nothing else needs
		if status < 300 && o.method != http.MethodGet && (v.name != "ids" || status == http.StatusCreated) {
			w.takeBack(t, name, v)
			if o.fresh != nil {
				o.fresh(v.at)
			}
		}
	}
	return cases
}

// checkHidden looks for what may not be seen: what others said, and, where the request does not name it, the ids and
// names of what they have.
func (w *world) checkHidden(t *testing.T, name string, o *matrixRequest, v *view, scopes access.Scopes, got answer) {
	t.Helper()
	if o.id == "exportStore" && got.status < 400 && v.header == "" {
		return // of all namespaces
	}
	refused, operates := got.status >= 400, scopes.Has(access.Operate) || o.id == "exportStore"
	var all []string
	if v.header == "" || refused {
		all = append(append(all, w.away.canary, w.away.shared), w.away.private...)
		if v.at != w.away {
			all = append(all, w.away.known()...)
		}
	}
	if v.header != "" && !refused {
		all = append(append(append(all, w.own.canary, w.own.shared), w.own.private...), w.own.known()...)
	}
	if !operates || refused || v.header != "" {
		all = append(append(all, w.other.canary), w.other.private...)
	}
	if !operates && v.header != "" {
		all = append(append(all, w.away.canary), w.away.private...)
	}
	text := plainText(t, got)
	for _, s := range all {
		if strings.Contains(text, s) {
			t.Errorf("%s: shows %s: %.300s", name, s, text)
		}
	}
}

// plainText is a reply with its headers; an archive as its files are.
func plainText(t *testing.T, got answer) string {
	t.Helper()
	if got.header.Get("Content-Type") == "application/octet-stream" && bytes.HasPrefix(got.body, []byte("\x1f\x8b")) {
		zip, err := gzip.NewReader(bytes.NewReader(got.body))
		if err != nil {
			t.Fatal(err)
		}
		if got.body, err = io.ReadAll(zip); err != nil {
			t.Fatal(err)
		}
	}
	return string(got.body) + fmt.Sprint(got.header)
}

// checkTwin asks for the same of what nobody has. The answer must not differ: it would show that there is something,
// how much, or what.
func (w *world) checkTwin(t *testing.T, name string, o *matrixRequest, v *view, token string, got answer) {
	t.Helper()
	if !pathNames.MatchString(o.path + o.query + o.body) {
		return
	}
	nobody := v.at.twin()
	twin := w.send(t, o.method, nobody.fill(o.path+o.query), nobody.fill(o.body), token,
		map[string]string{"Recurgent-Namespace": v.header, "Content-Type": o.media, "Accept": o.accept})
	if a, b := v.at.unfill(got), v.at.unfill(twin); a != b {
		t.Errorf("%s: %s\nand of what nobody has: %s", name, a, b)
	}
}

// checkRefusal looks for a problem detail that names what lacks.
func checkRefusal(t *testing.T, name string, got answer, missing access.Scope) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Code, Missing string
		Status                             int
		Scopes                             []string
	}
	media, _, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	var rpc struct { // of MCP: the problem is the error's data
		JSONRPC string
		Error   struct{ Data json.RawMessage }
	}
	if json.Unmarshal(got.body, &rpc) == nil && rpc.JSONRPC == "2.0" && media == "application/json" {
		got.body, media = rpc.Error.Data, "application/problem+json"
	}
	if err := json.Unmarshal(got.body, &p); err != nil || media != "application/problem+json" ||
		p.Status != got.status || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Errorf("%s: %d is no problem detail: %s %.300s", name, got.status, media, got.body)
	}
	challenge := got.header.Get("WWW-Authenticate")
	switch got.status {
	case http.StatusUnauthorized:
		if p.Code != "unauthenticated" || challenge != `Bearer realm="recurgentd"` ||
			!strings.Contains(p.Detail, "no access token") {
			t.Errorf("%s: challenge %s, problem %s", name, challenge, got.body)
		}
	case http.StatusForbidden:
		if p.Code != "insufficient_scope" || p.Missing != missing.String() || slices.Contains(p.Scopes, p.Missing) ||
			!strings.Contains(p.Detail, "lacks the scope "+p.Missing) ||
			!strings.Contains(challenge, `scope="`+p.Missing+`"`) {
			t.Errorf("%s: challenge %s, problem %s, want %s to be missing", name, challenge, got.body, missing)
		}
	}
}
