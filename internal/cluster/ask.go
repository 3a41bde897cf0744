package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds an answer to Ask, in bytes. A longer one counts as ErrLost.
const maxAnswer = 8 << 20

// An Answer is the reply of another replica to Ask. Err is nil if the replica replied with 200 in time; otherwise it
// wraps ErrUnreachable or ErrLost.
type Answer struct {
	Replica string // its id
	Body    []byte
	Err     error
}

// Ask sends a GET of the path with the header to all other replicas and returns their answers in the order of their
// ids. It waits at most Options.Dial for all of them together.
func (c *Cluster) Ask(ctx context.Context, path string, header http.Header) ([]Answer, error) {
	all, err := c.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Dial)
	defer cancel()
	var answers []Answer
	var asked []chan Answer
	for _, r := range all {
		if r.ID == c.ID() {
			continue
		}
		answer := make(chan Answer, 1)
		asked = append(asked, answer)
		go func() {
			body, err := c.get(ctx, r.Address, path, header)
			answer <- Answer{r.ID, body, err}
		}()
	}
	for _, answer := range asked {
		answers = append(answers, <-answer) // the context bounds the wait
	}
	return answers, nil
}

// get returns the body of the reply of the replica at the address.
func (c *Cluster) get(ctx context.Context, address, path string, header http.Header) ([]byte, error) {
	if address == "" || c.peers == nil {
		return nil, fmt.Errorf("%w: replicas without --advertise cannot be asked", ErrUnreachable)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	res, err := c.peers.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	case res.StatusCode != http.StatusOK || len(body) > maxAnswer:
		return nil, fmt.Errorf("%w: status %d and %d bytes", ErrLost, res.StatusCode, len(body))
	}
	return body, nil
}
