//! Object stores: those of datafusion-cli (s3://, gs://, http://, https://), and Azure's (az://container/path), made from
//! the environment (`AZURE_STORAGE_ACCOUNT_NAME`, …) when a location first names a container.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::ObjectStore;
use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;
use url::Url;

/// The stores of a session.
#[derive(Debug)]
pub struct Stores(pub Arc<InstrumentedObjectStoreRegistry>);

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let known = self.0.get_store(url);
        match url.scheme() {
            "az" | "azure" if known.is_err() => {
                let store = azure::store(url)?;
                self.0.register_store(url, Arc::clone(&store));
                Ok(store)
            }
            _ => known,
        }
    }
}

#[cfg(feature = "azure")]
mod azure {
    use super::*;
    use datafusion::common::exec_datafusion_err;
    use datafusion::object_store::CredentialProvider;
    use datafusion::object_store::azure::{AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};

    /// The store of the container that a URL names.
    pub fn store(url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let container = url
            .host_str()
            .ok_or_else(|| exec_datafusion_err!("'{url}' names no container"))?;
        let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(container);
        if builder
            .get_config_value(&AzureConfigKey::AccountName)
            .is_none()
        {
            builder = builder
                .with_account("unknown")
                .with_credentials(Arc::new(NoAccount));
        }
        Ok(Arc::new(builder.build()?))
    }

    /// Says what is missing when the store is first used.
    #[derive(Debug)]
    struct NoAccount;

    #[async_trait::async_trait]
    impl CredentialProvider for NoAccount {
        type Credential = AzureCredential;

        async fn get_credential(&self) -> datafusion::object_store::Result<Arc<AzureCredential>> {
            Err(datafusion::object_store::Error::Generic {
                store: "MicrosoftAzure",
                source: "AZURE_STORAGE_ACCOUNT_NAME is not set".into(),
            })
        }
    }
}

#[cfg(not(feature = "azure"))]
mod azure {
    use super::*;
    use datafusion::common::not_impl_err;

    /// This program was built without them.
    pub fn store(url: &Url) -> Result<Arc<dyn ObjectStore>> {
        not_impl_err!("the scheme '{}' needs the feature 'azure'", url.scheme())
    }
}

#[cfg(all(test, feature = "azure"))]
mod tests {
    use super::*;

    #[test]
    fn containers_have_stores_of_their_own() {
        let stores = Stores(Arc::new(InstrumentedObjectStoreRegistry::new()));
        let store = |url: &str| stores.get_store(&Url::parse(url).expect("a URL"));
        let first = store("az://one/a.parquet").expect("made");
        assert!(Arc::ptr_eq(&first, &store("az://one/b/").expect("known")));
        assert!(!Arc::ptr_eq(&first, &store("az://two/b/").expect("made")));
        assert!(first.to_string().contains("one"), "{first}");
        assert!(store("ftp://host/a.parquet").is_err());
    }
}
