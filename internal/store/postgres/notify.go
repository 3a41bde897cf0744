package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is the channel of the notifications.
const channel = "recurgentd_feed"

// notifyEvery is the minimum interval between notifications by this replica. sendHint does not wait for the disk,
// because a lost notification only causes a poll.
const (
	notifyEvery = 20 * time.Millisecond
	sendHint    = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('" + channel + "', '')"
)

// hint signals that the feed has a new change.
func (s *Store) hint() {
	s.bell.Ring()
	select {
	case s.hints <- struct{}{}:
	default:
	}
}

// notify forwards hints to other replicas until ctx ends. It does so outside of the transactions that made the changes,
// because transactions that notify wait for each other.
func (s *Store) notify(ctx context.Context) {
	pause := time.NewTicker(notifyEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hints:
			// A failure does not matter: others poll.
			_ = s.read(ctx, func(ctx context.Context) error {
				_, err := s.pool.Exec(ctx, sendHint)
				return err
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// listen rings the bell when another replica notifies, until ctx ends. Without a connection, polling finds the changes.
func (s *Store) listen(ctx context.Context, config *pgx.ConnConfig) {
	for ctx.Err() == nil {
		if err := s.listenOnce(ctx, config); err != nil && ctx.Err() == nil {
			s.o.Logger.Debug().Err(err).Msg("no notifications of other replicas; the change feed is polled")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pingEvery):
		}
	}
}

func (s *Store) listenOnce(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // nothing is left to send
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		s.bell.Ring()
	}
}
