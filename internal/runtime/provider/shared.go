package provider

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// MaxRequests is the most concurrent requests of one owner. All owners together may have a third more.
const MaxRequests = 64

// Shared returns p with concurrent requests divided among owners. most bounds the requests of one owner; others have
// room left (see fair.Share). Further requests wait.
func Shared(p Provider, most int) Provider {
	return &shared{p, fair.NewShare[agent.Owner](int64(most))}
}

type shared struct {
	Provider
	places *fair.Share[agent.Owner]
}

func (s *shared) Program(ctx context.Context, r Request) (Reply, error) {
	if err := s.places.Enter(ctx, r.Owner, 1); err != nil {
		return Reply{}, err
	}
	defer s.places.Leave(r.Owner, 1)
	return s.Provider.Program(ctx, r)
}

func (s *shared) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	if err := s.places.Enter(ctx, r.Owner, 1); err != nil {
		return ChatReply{}, err
	}
	defer s.places.Leave(r.Owner, 1)
	return s.Provider.Chat(ctx, r)
}
