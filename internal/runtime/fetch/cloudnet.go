package fetch

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// cloudNetworks returns networks that look public and are not. A machine inside a provider's network reaches services
// there that trust it because of its location; nobody else reaches them. Package ssrf already refuses what IANA
// reserves, and with it the other addresses of metadata services: 169.254.0.0/16 and fe80::/10 (most clouds),
// 100.64.0.0/10 (Alibaba's 100.100.100.200), 192.0.0.0/24 (Oracle's 192.0.0.192), fd00::/8 (AWS's fd00:ec2::254,
// Google's fd20:ce::254), and networks that embed IPv4 addresses: 64:ff9b::/96, 2002::/16, 2001::/32, ::ffff:0:0/96.
func cloudNetworks() (v4, v6 []netip.Prefix) {
	for _, p := range []string{
		// Azure: WireServer, DNS, DHCP, health probes ("What is IP address 168.63.129.16?", learn.microsoft.com).
		"168.63.129.16/32",
		// IBM Cloud: IaaS endpoints (DNS, mirrors, object storage) and private service endpoints ("Service endpoints
		// for VPC", cloud.ibm.com/docs/vpc).
		"161.26.0.0/16", "166.8.0.0/14",
		// Google Cloud: restricted. and private.googleapis.com, which are not announced to the internet ("Configure
		// Private Google Access", cloud.google.com/vpc), direct connections to its interfaces, and services of a GKE
		// cluster.
		"199.36.153.4/30", "199.36.153.8/30", "34.126.0.0/18", "34.118.224.0/20",
		"2600:2d00:2:1000::/56", "2600:2d00:2:2000::/56", "2600:2d00:0:4::/64", "2001:4860:8040::/42",
	} {
		prefix := netip.MustParsePrefix(p)
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	return v4, v6
}

// cloudHost reports whether the host has a public address but answers with metadata of the asking machine ("Metadata",
// docs.equinix.com/metal).
func cloudHost(host string) bool {
	return host == "metadata.platformequinix.com" || host == "metadata.packet.net"
}

// publicOnly returns a guard that refuses connections to anything but public addresses.
func publicOnly() *ssrf.Guardian {
	v4, v6 := cloudNetworks()
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithNetworks("tcp4", "tcp6"), ssrf.WithDeniedV4Prefixes(v4...),
		ssrf.WithDeniedV6Prefixes(v6...))
}
