//! Object stores: those of datafusion-cli (s3://, gs://, http://, https://), and Azure's (az://container/path).
//!
//! datafusion-cli makes a store when a statement reads from or copies to its bucket. The target of `publish` is an
//! argument, which it does not look at, so stores are also made from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`) when
//! a bucket or container is first asked for.

use std::sync::Arc;

use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::ObjectStore;
use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;
use datafusion_cli::object_storage::{
    AwsOptions, GcpOptions, get_gcs_object_store_builder, get_s3_object_store_builder,
};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;
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
        if known.is_ok() {
            return known;
        }
        let store = match url.scheme() {
            "s3" => s3(url)?,
            "gs" | "gcs" => {
                Arc::new(get_gcs_object_store_builder(url, &GcpOptions::default())?.build()?)
            }
            "az" | "azure" => azure::store(url)?,
            _ => return known,
        };
        self.0.register_store(url, store);
        self.0.get_store(url)
    }
}

/// The store of a bucket, as datafusion-cli makes it where a table is named.
///
/// Credentials may have to be asked for, and nobody can await them here. The program has a runtime of several threads,
/// which goes on while one of them waits.
fn s3(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    let runtime = Handle::try_current().ok();
    let runtime = runtime.filter(|r| r.runtime_flavor() == RuntimeFlavor::MultiThread);
    let runtime = runtime.ok_or_else(|| exec_datafusion_err!("'{url}' needs several threads"))?;
    let options = AwsOptions::default();
    let builder = get_s3_object_store_builder(url, &options, false);
    let builder = block_in_place(|| runtime.block_on(builder))?;
    Ok(Arc::new(builder.build()?))
}

#[cfg(feature = "azure")]
mod azure {
    use super::*;
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
