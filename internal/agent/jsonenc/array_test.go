package jsonenc_test

import (
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

func TestArray(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]json.RawMessage{
		"[]": nil, "[1]": {json.RawMessage("1")}, `[1,"b",[3]]`: {json.RawMessage("1"), json.RawMessage(`"b"`),
			json.RawMessage("[3]")},
	} {
		if got := jsonenc.Array(values); string(got) != want || cap(got) != len(got)+min(1, len(values)) {
			t.Errorf("got %s of capacity %d, want %s", got, cap(got), want)
		}
	}
}
