package api

import (
	"encoding/json"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// fixtureList is what proves the programs of a method, apart from its examples: recorded calls of the current
// generation, and recorded effects of active examples by id. Both contain values of sessions.
type fixtureList struct {
	Data       []agent.Fixture            `json:"data"`
	Effects    map[string]json.RawMessage `json:"effects"`
	NextCursor *string                    `json:"next_cursor"` // always null: a generation keeps few fixtures
}

// listFixtures needs the scope operate, since fixtures contain values of all owners' sessions.
func (s *server) listFixtures(w *reply, r *http.Request) error {
	a, err := s.artifact(w, r)
	if err != nil {
		return err
	}
	out := fixtureList{Data: []agent.Fixture{}, Effects: map[string]json.RawMessage{}}
	if g := a.Current(); g != nil {
		for _, f := range g.Fixtures {
			if f.Args == nil {
				f.Args = []json.RawMessage{}
			}
			if len(f.Kwargs) == 0 {
				f.Kwargs = json.RawMessage("{}")
			}
			out.Data = append(out.Data, f)
		}
	}
	for _, x := range a.ActiveExamples() {
		if x.Effects != nil {
			out.Effects[x.ID] = x.Effects
		}
	}
	return s.send(w, http.StatusOK, out)
}
