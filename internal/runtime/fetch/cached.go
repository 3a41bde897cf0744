package fetch

import (
	"net/http"

	"github.com/recurgentd/recurgentd/internal/runtime/fetch/httpcache"
)

// exchange sends the request, or answers it from the cache if the program accepts that. A successful write invalidates
// cached answers for its address.
func (h *hops) exchange(r *http.Request) (*http.Response, error) {
	if h.cache && h.method == http.MethodGet {
		return h.fromCache(r)
	}
	answer, err := h.client.transport.RoundTrip(r)
	if err == nil && answer.StatusCode < http.StatusBadRequest && h.client.cache != nil {
		h.client.cache.Invalidate(r, string(h.who.Owner.Namespace))
	}
	return answer, err
}

// fromCache answers the request from the cache, or sends it. The request is already signed, so an answer obtained with
// another credential does not match. Namespaces share nothing. With a connection, only calls of the same role share
// cached answers.
func (h *hops) fromCache(r *http.Request) (*http.Response, error) {
	p := httpcache.Partition{Scope: string(h.who.Owner.Namespace), Outage: outage}
	if h.connection != nil {
		p.Name, p.Private = h.who.Role+"\x00"+h.connection.Name(), true
	}
	a, err := h.client.cache.RoundTrip(r, p, h.client.transport)
	if err != nil {
		return nil, err
	}
	h.kept = a
	return a.Response, nil
}

// outage reports whether the error is a fault of the host or the network.
func outage(err error) bool {
	switch refusalOf(err).Kind {
	case KindDNS, KindRefused, KindTimeout, KindNetwork:
		return true
	}
	return false
}
