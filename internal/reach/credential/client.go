package credential

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// newClient returns the client for what a server and its metadata name. The hosts that the
// operator chose, those of the server and of the issuer of the configuration, are reached as
// servers are: in a private network, too, through a proxy, and with the files. Of others only public
// addresses are connected to, unless the server itself is on this machine or in a private
// network by its very address: then its authorization server may be there as well.
func newClient(server *url.URL, issuer string, files tlsfiles.Files) *http.Client {
	const wait = 20 * time.Second
	chosen := safehttp.Options{MaxRedirects: -1, HeaderTimeout: wait, Control: local}
	others := safehttp.Options{MaxRedirects: -1, HeaderTimeout: wait, Untrusted: true}
	if nearby(server.Hostname()) {
		others = chosen
		if !here(server.Hostname()) {
			others.Control = localElsewhere
		}
	}
	client := safehttp.NewClient(others)
	hosts := &byHost{hosts: []string{server.Hostname()}, chosen: files.Client(chosen, nil).Transport, others: client.Transport}
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		hosts.hosts = append(hosts.hosts, u.Hostname())
	}
	client.Transport = &discovery{&clientAuth{next: hosts}}
	client.Timeout = 30 * time.Second
	return client
}

// local has no connection made to where a cloud has its secrets.
func local(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return safehttp.CheckLocal(to.Addr())
}

// localElsewhere is local for what a server names that is not on this machine: nothing here is.
func localElsewhere(network, address string, conn syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err == nil && (to.Addr().Unmap().IsLoopback() || to.Addr().Unmap().IsUnspecified()) {
		return fmt.Errorf("%w: %s is this machine, and the server is elsewhere", safehttp.ErrAddress, to.Addr().Unmap())
	}
	return local(network, address, conn)
}

// A byHost sends requests to the hosts that an operator chose in one way, and others in
// another one.
type byHost struct {
	hosts          []string
	chosen, others http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b *byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if slices.ContainsFunc(b.hosts, func(host string) bool { return strings.EqualFold(host, r.URL.Hostname()) }) {
		return b.chosen.RoundTrip(r)
	}
	return b.others.RoundTrip(r)
}

// CloseIdleConnections ends the connections that are kept open.
func (b *byHost) CloseIdleConnections() {
	for _, next := range []http.RoundTripper{b.chosen, b.others} {
		if c, ok := next.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// nearby reports whether a host is this machine, or in a private network by its very address.
func nearby(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && safehttp.CheckAddress(ip) != nil && safehttp.CheckLocal(ip) == nil
}

// here reports whether a host is this machine by its name.
func here(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}
