// Package provider implements "providerd provider", which creates, shows, changes, deletes and exports providers.
//
// Start with Commands.
package provider

// Commands has the commands of "providerd provider".
type Commands struct {
	List   listCommand   `cmd:"" aliases:"ls" help:"List providers, ordered by pk."`
	Show   showCommand   `cmd:"" usage:"(<pk> | --client-id=ID) [flags]" help:"Show one provider with all its fields."`
	Export exportCommand `cmd:"" help:"Write providers to a file for \"providerd apply\"."`
	Create createCommand `cmd:"" report:"" help:"Create a provider."`
	Update updateCommand `cmd:"" report:"" help:"Change fields of a provider."`
	Delete deleteCommand `cmd:"" aliases:"rm" help:"Delete providers."`
}
