package runtime

// NamedSignature is a signature under a name.
type NamedSignature struct {
	Name string `json:"name"`
}
