// Package exports embeds the export data of the allowed packages, which the gate type-checks programs against. The data
// matches the Go version of the binary. Command gen generates it.
package exports
