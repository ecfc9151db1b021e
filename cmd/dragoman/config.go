package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
)

func configCommand() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration as it is in effect, secrets hidden",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := s.load(environment())
			if err != nil {
				return err
			}
			if s.quiet {
				_, err = cmd.OutOrStdout().Write(config.Effective(file))
				return err
			}
			stderr := terminal.NewScreen(os.Stderr)
			if file.Path == "" {
				stderr.Printf("%s\n", stderr.Faint("# no configuration file; these are the defaults"))
			} else {
				stderr.Printf("%s\n", stderr.Faint("# from "+file.Path))
			}
			s.warnLeftOut(file)
			s.warn(stderr, file)
			_, err = cmd.OutOrStdout().Write(config.Effective(file))
			return err
		},
	}
	s.flags(cmd)
	cmd.AddCommand(configDiffCommand())
	cmd.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(append(config.Schema(), '\n'))
			return err
		},
	})
	return cmd
}
