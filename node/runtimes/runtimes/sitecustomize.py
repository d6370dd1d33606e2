"""Start of every Python process of a function: gives it the network, if it has one."""

import assay_network

assay_network.install()
