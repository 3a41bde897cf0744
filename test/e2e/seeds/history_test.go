package seeds

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 000:103: conversation_history is always an array: absent, malformed or not, for clients that read the context, in the
// reply of a patch, and for programs, which find the session's records there.
func TestSeed000Line103(t *testing.T) {
	t.Parallel()
	count := rig.Program("\tl, ok := call.Context[\"conversation_history\"].([]any)\n\treturn map[string]any{\"array\": ok, \"records\": len(l)}, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"assistant.count": {count}}))
	s := d.Session("assistant")
	path := "/v1/sessions/" + s + "/context"
	for i, tt := range []struct {
		stored string // by a merge patch
		want   any
	}{{`{}`, []any{}}, {`{"conversation_history": "broken"}`, []any{}}, {`{"conversation_history": {"a": 1}}`, []any{}}, {`{"conversation_history": 5}`, []any{}},
		{`{"conversation_history": [1]}`, []any{1}}, {`{"conversation_history": null, "other": 1}`, []any{}}} {
		patched := d.Send(http.MethodPatch, path, []byte(tt.stored), map[string]string{"Content-Type": "application/merge-patch+json"})
		if patched.Status != http.StatusOK || !rig.Equal(tt.want, patched.Object(t)["conversation_history"]) {
			t.Errorf("patched with %s: status %d, %s", tt.stored, patched.Status, patched.Body)
		}
		if got := d.Get(path); !rig.Equal(tt.want, got["conversation_history"]) {
			t.Errorf("after %s the context is %v", tt.stored, got)
		}
		d.WantValue(d.Call(s, "count"), object{"array": true, "records": i}, "")
	}
	if got := d.Get(path); got["other"] != 1.0 {
		t.Errorf("the rest of the context is gone: %v", got)
	}
}
