package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/internal/stage/demo"
)

func demoServerCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "demo-server",
		Short: "Run the demo MCP server, over stdio or HTTP",
		Long: `Runs an MCP server with a few small tools on bundled data, to try clients with:
weather, restaurants, an organisation, sums, CSV files, records, and a scratch
folder to delete files in. It needs no network.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := demo.New(demo.Options{Version: version()})
			defer d.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if address == "" {
				err := d.ServeStdio(ctx, os.Stdin, os.Stdout)
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			host, _, err := net.SplitHostPort(address)
			if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
				return &usageError{errors.New("--http takes a loopback address with a port, such as 127.0.0.1:3000"), ""}
			}
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return listenError(err, "--http "+elsewhere(address))
			}
			terminal.NewScreen(os.Stderr).Printf("MCP at http://%s/mcp\n", listener.Addr())
			server := &http.Server{Handler: d.Handler(), ReadHeaderTimeout: 10 * time.Second}
			go func() {
				<-ctx.Done()
				server.Close()
			}()
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&address, "http", "", "serve Streamable HTTP at this `ADDRESS` instead of stdio")
	return cmd
}
