// Package mask hides secrets in data that is stored or shown to a model. Rules find secrets by name, by place (query
// parameters and user information of URLs) and by the shape of well-known kinds of secrets. Known finds secrets with
// known values in any of the encodings in which they may appear.
//
// The package works on plain data and does no I/O. Rules and Known may be used concurrently. Each pass takes time
// linear in the text, whatever the secrets are.
package mask
