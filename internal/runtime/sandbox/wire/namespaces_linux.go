package wire

import "os"

// Namespaces returns the namespaces of this process, by the name of the confinement layer. It omits those that cannot
// be read.
func Namespaces() map[string]string {
	out := map[string]string{}
	for layer, name := range map[string]string{"pidns": "pid", "netns": "net", "mntns": "mnt", "ipcns": "ipc",
		"utsns": "uts", "userns": "user"} {
		if target, err := os.Readlink("/proc/self/ns/" + name); err == nil {
			out[layer] = target
		}
	}
	return out
}
