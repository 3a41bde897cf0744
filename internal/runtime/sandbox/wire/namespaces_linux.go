package wire

import "os"

// Namespaces reads which namespaces this process is in, by the name of the layer that each is for a runner.
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
