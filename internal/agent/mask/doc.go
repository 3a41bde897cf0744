// Package mask hides secrets in what is stored or shown to a model: values under the names of secrets, query parameters and user
// information of URLs, and values that have the form of a well-known kind of secret (Rules); and secrets that are known, in the
// ways in which they may be written (Known). It works on plain data, does no I/O, and may be used concurrently. Each pass takes a time linear in the
// text, whatever the secrets are.
package mask
