# install is filled in with the packaging files
