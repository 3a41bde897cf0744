// Package check holds what people deploy recurgentd with against the specifications it is written for: the compose file
// against the Compose specification's own loader, the manifests against the types of the Kubernetes API, both against
// the binary. It is a module of its own, so that none of this is a dependency of the daemon.
package check
