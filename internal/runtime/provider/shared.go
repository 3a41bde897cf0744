package provider

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/fair"
)

// MaxRequests is how many requests of one owner the model is asked at once; a third more for others.
const MaxRequests = 64

// Shared returns p with its requests divided among owners: at most so many of one owner are sent at once, those of others find
// room beside them, and the rest wait. See fair.Share.
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
